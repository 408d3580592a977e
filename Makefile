# The commands of the README, and a few for development. Each one sets up, configures and builds what is missing.
#   make run     build the tool, run the main job (configs/quick.yaml): a table here and out/results.json
#   make test    build and run every test, of the GPU kernels on the executor and of the Python package too (PYTHON=0: without it)
#   make check   build and test under AddressSanitizer and UBSan, then under ThreadSanitizer (SANITIZERS=asan: these alone)
#   make executor   of these tests the GPU kernels', on the CPU, with their accesses and waits checked (docs/executor.md)
#   make wheel   build the Python wheel into dist/
#   make build   build everything;  make clean   remove what was built (not what was installed)
# The GPU kernels are compiled where a GPU is. CUDA=1 compiles them everywhere, and fetches a compiler where none is
# installed. CUDA=0 leaves them out.
.PHONY: run test check executor wheel build clean
run:
	@sh scripts/run.sh
test:
	@sh scripts/test.sh
check:
	@sh scripts/check.sh
executor:
	@sh scripts/executor.sh
wheel:
	@sh scripts/wheel.sh
build:
	@sh scripts/build.sh >/dev/null
clean:
	rm -rf build build-* out dist
.DEFAULT_GOAL := build
