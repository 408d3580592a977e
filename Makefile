# The two commands of the README, and a few for development. Each one sets up, configures and builds what is missing.
#   make run     set up, build the tool, run the main job (configs/quick.yaml): a table here and out/results.json
#   make test    set up, build, run every test (FAST=1: without the sanitizer builds)
#   make wheel   set up, build the Python wheel into dist/
#   make build   set up and build;  make clean   remove what was built (not what was installed)
# CUDA=1 fetches a CUDA compiler where none is installed, CUDA=0 builds the CPU half alone.
.PHONY: run test wheel build clean
run:
	@sh scripts/run.sh
test:
	@sh scripts/test.sh
wheel:
	@sh scripts/wheel.sh
build:
	@sh scripts/build.sh >/dev/null
clean:
	rm -rf build build-* out dist
.DEFAULT_GOAL := build
