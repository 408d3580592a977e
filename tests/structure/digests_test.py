#!/usr/bin/env python3
"""What identifies the code of a variant, and what the documents say of rows of other code.

digests_test.py SOURCE_DIR
"""

import json
import pathlib
import shutil
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(source / "cmake"), str(source / "scripts")]
import code_digests
import update_tables

failed = []


def expect(holds, what):
    if not holds:
        failed.append(what)


def check_sources():
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        shutil.copytree(source / "src/ops", tree / "src/ops")
        simd = tree / "src/ops/resample/forward/cpu/simd"

        def now():
            return code_digests.of_sources(tree, simd)

        def change(path, old, new):
            file = tree / "src/ops/resample" / path
            text = file.read_text(encoding="utf-8")
            expect(old in text, f"{path} holds no {old!r}")
            file.write_text(text.replace(old, new, 1), encoding="utf-8")

        first = now()
        change("forward/cpu/simd/simd.cpp", "\n", "\n// A remark.\n   \n/* another */")
        expect(now() == first, "a comment changes the digest")
        change("problem.cpp", "return", "return  0 +")
        expect(now() == first, "the check of the arguments changes the digest")
        change("shared/tiles.cpp", "return", "return 0 +")
        expect(now() != first, "a shared .cpp file does not change the digest")
        second = now()
        change("forward/cpu/simd/simd.cpp", "namespace", "int added = 1; namespace")
        expect(now() not in (first, second), "the variant's own file does not change the digest")
    expect(code_digests.bare('a = "// no comment"; // one') == 'a="//nocomment";', "a text is taken for a comment")
    name = "_ZN6tmaops3ops4gemm9wgmma_tma41_GLOBAL__N__a47ba0d7_9_kernel_cu_b014a7b96kernelI13__nv_bfloat16EEvv"
    expect(code_digests.namespaces(name)[:4] == ["tmaops", "ops", "gemm", "wgmma_tma"], "the variant of a kernel")


def check_notes():
    digests = update_tables.Digests(None)
    digests.compilers = {"cuda": "nvcc 13.0.88", "cpu": "GNU 12.2.0"}
    digests.digests = {"gemm": {"wgmma_tma": {"90": "new"}, "blocked": {"0": "new"}}}

    def row(name, digest, compiler="nvcc 13.0.88", device="cuda:0"):
        code = {"code": {"digest": digest, "compiler": compiler}} if digest else {}
        return {"operator": "gemm", "selected": name, "kind": "variant", "device": device, **code}

    expect(digests.changed(row("wgmma_tma", "new")) is False, "the same code")
    expect(digests.changed(row("wgmma_tma/64x64", "old")) is True, "other code")
    expect(digests.changed(row("wgmma_tma", "old", "nvcc 12.9")) is None, "code of another compiler")
    expect(digests.changed(row("wgmma_gone", "new")) is True, "a variant that is gone")
    expect(digests.changed(row("wgmma_tma", None)) is True, "a row without a digest")
    expect(digests.changed(row("blocked", "new", "GNU 13.3.0", "cpu")) is False, "the same sources, another compiler")
    before = "`results/a.json`: GPU, revision 0a. The code has changed since: `x`.\n"
    note = digests.note("a", [row("wgmma_tma", "old"), row("blocked", "new", device="cpu")], before)
    expect(note == " The code has changed since: `wgmma_tma`.", f"what stands below a table: {note!r}")
    before = before.replace("`x`", "`wgmma_tma`")
    unknown = digests.note("a", [row("wgmma_tma", "old", "nvcc 12.9"), row("gone", None)], before)
    expect(
        unknown == " The code has changed since: `wgmma_tma`, `gone`." and digests.unknown == {"a"},
        f"what a build cannot compare stays beside what it can: {unknown!r}",
    )
    digests.compilers["cuda"], digests.digests = "", {"gemm": {"blocked": {"0": "new"}}}
    expect(digests.changed(row("wgmma_tma", "old")) is None, "a build without kernels")


def check_machines():
    """A table takes the machine with the most cases of today's code; README leaves the others out."""
    digests = update_tables.Digests(None)
    digests.compilers, digests.digests = {"cuda": "nvcc 13.0.88"}, {"gemm": {"wgmma_tma": {"90": "new"}}}
    spec, before = (
        "results/{h100,h200}/a.json operator=gemm show=cublas cases=RC_1|RC_2|RC_3",
        "| gemm RC 3 |\n`results/h200/a.json`:",
    )

    def picked(h100, h200, fresh_only=True):
        with tempfile.TemporaryDirectory() as folder:
            update_tables.ROOT = pathlib.Path(folder)
            for machine, of_cases in (("h100", h100), ("h200", h200)):
                row = {"operator": "gemm", "implementation": "tmaops", "selected": "wgmma_tma/64x64", "kind": "variant"}
                rows = [
                    {**row, "device": "cuda:0", "case": f"RC {i}", "code": {"digest": digest, "compiler": compiler}}
                    for i, (digest, compiler) in enumerate(of_cases, 1)
                ]
                file = update_tables.ROOT / "results" / machine / "a.json"
                file.parent.mkdir(parents=True)
                file.write_text(json.dumps({"rows": rows}))
            return update_tables.on_one_machine(spec, before, digests, fresh_only)

    new, old, other = ("new", "nvcc 13.0.88"), ("old", "nvcc 13.0.88"), ("new", "nvcc 12.9")
    one, left_out = picked([new, old, old], [new, new, old])
    expect(
        "results/h200/a.json" in one and "cases=RC_1|RC_2" in one and "RC 3" in left_out,
        "the H200 has more of today's code",
    )
    one, left_out = picked([new, new, new], [new, new, new])
    expect("results/h100/a.json" in one and left_out == "", "the first machine where they are equal")
    one, left_out = picked([old, old, old], [other, other, other])
    expect("results/h200/a.json" in one and "cases=RC_3" in one, "a build that cannot compare keeps what stood there")
    one, said = picked([old, old, old], [old, old, old])
    expect(one is None and "(docs/gemm.md)" in said, "README names the page where there are no others")
    one, _ = picked([old, old, old], [old, old, old], fresh_only=False)
    expect(
        "results/h200/a.json" in one and "cases=RC_1|RC_2|RC_3" in one,
        "a page keeps its old rows where there are no others",
    )


check_sources()
check_notes()
check_machines()
print("\n".join(failed) or "digests and notes are right")
sys.exit(1 if failed else 0)
