#!/usr/bin/env python3
"""The product does without its wings: shown by deleting them from a copy of the tree.

  deletions_test.py --source DIR --work DIR --objects BUILD [--cmake CMAKE] [--cxx CXX] [--launcher CCACHE]

1. Without each wing alone, and without all, the tree is configured, and every file that its build names is there.
2. With the tool as the only wing, the tool is built. It lists operators, and says by name what is not in the build.
3. Without any wing, the library, a program of its tests and an example are built and run.

The variants on the CPU are taken from the folder BUILD, the rest is built without optimisation, and without a GPU's kernels.
What C++ and Python may include and import across wings, check_tree.py and check_imports.py say.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

WINGS = ("tool", "study", "measure", "datasets")
PRODUCT = ("include", "src", "python", "cmake", "tests", "examples", "scripts", "configs", "CMakeLists.txt", "LICENSE")


def run(*command, code=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != code:
        sys.exit(
            f"FAILED ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        )
    return done.stdout + done.stderr


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def copy(source, name, to):
    if (source / name).is_dir():
        skipped = shutil.ignore_patterns("__pycache__", "lib", "bin") if name == "python" else None
        shutil.copytree(source / name, to / name, ignore=skipped)
    else:
        shutil.copy(source / name, to / name)


class Copy:
    """A copy of the tree with some wings, and its build folder."""

    def __init__(self, options, folder, wings):
        self.options, self.tree, self.build = options, folder / "tree", folder / "build"
        shutil.rmtree(folder, ignore_errors=True)
        self.tree.mkdir(parents=True)
        for name in (*PRODUCT, *wings):
            copy(options.source, name, self.tree)

    def configure(self, *more):
        settings = [f"-DCMAKE_CXX_COMPILER={self.options.cxx}", "-DCMAKE_BUILD_TYPE=Debug", "-DTMAOPS_CUDA=OFF", *more]
        settings += ["-DCMAKE_CXX_FLAGS_DEBUG=-O0"]
        if self.options.launcher:
            settings.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={self.options.launcher}")
        run(self.options.cmake, "-G", "Ninja", "-S", self.tree, "-B", self.build, *settings)

    def make(self, *targets):
        run(self.options.cmake, "--build", self.build, "--target", *targets)

    def check_files(self):
        """A build that is not run fails where a file is missing."""
        done = subprocess.run(["ninja", "-C", self.build, "-n"], capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"{self.tree}: {done.stdout[-2000:]}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "work", "objects"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--launcher", default="")
    options = parser.parse_args()

    for wing in WINGS:
        one = Copy(options, options.work / f"without_{wing}", [other for other in WINGS if other != wing])
        one.configure()
        one.check_files()
        shutil.rmtree(one.tree.parent)
        print(f"without {wing}/: configured, and every file is there", flush=True)

    product = Copy(options, options.work / "product", ["tool"])
    product.configure(f"-DTMAOPS_OBJECTS_FROM={options.objects}", "-DTMAOPS_BUILD_TESTS=OFF")
    product.make("tmaops_tool")
    tool = product.build / "tool/tmaops"
    for operator in ("gemm", "ms_deform_attn", "resample"):
        expect(re.search(rf"^{operator}$", run(tool, "list"), re.MULTILINE), f"the tool alone does not list {operator}")
    for command in ("bench", "verify", "probe"):
        refusal = run(tool, command, "quick", code=2)
        expect(command in refusal and "measure/" in refusal, f"{command} in a build without it says:\n{refusal}")
    print("with tool/ alone: the tool is built, and says what it is without", flush=True)

    shutil.rmtree(product.tree / "tool")
    product.configure("-DTMAOPS_BUILD_TESTS=ON", "-DTMAOPS_BUILD_TOOL=OFF")
    product.check_files()
    product.make("tmaops", "test_core", "example_quickstart")
    run(product.build / "tests/test_core", "--gtest_brief=1")
    run(product.build / "examples/example_quickstart")
    shutil.rmtree(options.work)
    print("without any wing: the library, its tests and an example are built and run")


if __name__ == "__main__":
    main()
