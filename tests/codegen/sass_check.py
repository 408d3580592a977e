#!/usr/bin/env python3
"""Reads the machine code in objects made by nvcc and checks what it promises; needs neither a GPU nor a disassembler.

  sass_check.py list OBJECT                          what each kernel uses and contains
  sass_check.py variant OBJECTS VARIANTS_DEF NAME [NEIGHBOUR ...]
                                                     a line of variants.def against its object, or several between
                                                     semicolons; with neighbours in it
                                                     against the kernels in its namespace, and every line's registers
                                                     and shared memory against kernels in no variant's
  sass_check.py device_layer OBJECT SOURCE           the EXPECT_SASS lines of SOURCE against its object

The code of every architecture in an object is checked (cmake/machine_code.py).
An instruction is 16 bytes whose low 12 bits say which one it is, on compute capability 8.0 to 12.0. The table was read from nvdisasm 13.0 and is checked
against it by tests/codegen/sass_table_test.py wherever nvdisasm is found.
"""

import collections
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cmake"))
from machine_code import cubins, sections

OPCODES = {
    # copies by the copy engine
    0x3B4: "UTMALDG",
    0x5B4: "UTMALDG",
    0x3B5: "UTMASTG",
    0x3B6: "UTMAREDG",
    0x5B8: "UTMAPF",
    0x9B9: "UTMACCTL",
    0x9B7: "UTMACMDFLUSH",
    0x3BA: "UBLKCP",
    0x3BB: "UBLKRED",
    0x3BC: "UBLKPF",
    # cp.async and barriers in shared memory
    0xFAE: "LDGSTS",
    0x9AF: "LDGDEPBAR",
    0x91A: "DEPBAR",
    0x9B0: "ARRIVES",
    0x5A7: "SYNCS",
    0x5B2: "SYNCS",
    0x9A7: "SYNCS",
    0x9B1: "SYNCS",
    0xB1D: "BAR",
    # tensor cores
    0x9F0: "HGMMA",
    0xDF0: "HGMMA",
    0x9C5: "WARPGROUP",
    0x9C8: "USETMAXREG",
    0x23C: "HMMA",
    0x83B: "LDSM",
    0x844: "STSM",
    # clusters and dependent launch
    0x9C7: "UCGABAR_ARV",
    0xDC7: "UCGABAR_WAIT",
    0xDBD: "STAS",
    0x82E: "ACQBULK",
    0x82D: "PREEXIT",
    0x82F: "ELECT",
    # fences and caches
    0x3C6: "FENCE",
    0x992: "MEMBAR",
    0x9AB: "ERRBAR",
    0x98F: "CCTL",
    # memory
    0x981: "LDG",
    0x986: "STG",
    0x983: "LDL",
    0x387: "STL",
    0x987: "STL",
    0x984: "LDS",
    0x388: "STS",
    0x988: "STS",
    0x980: "LD",
    0x985: "ST",
    0x98E: "RED",
    0x9A6: "RED",
    0x9A8: "ATOMG",
    0x3A9: "ATOMG",
    0x38C: "ATOMS",
    0x38D: "ATOMS",
    # arithmetic and warps
    0x223: "FFMA",
    0x423: "FFMA",
    0x823: "FFMA",
    0xA23: "FFMA",
    0xC23: "FFMA",
    0xE23: "FFMA",
    0x231: "HFMA2",
    0x235: "HFMA2",
    0x308: "MUFU",
    0x908: "MUFU",
    0xD08: "MUFU",
    0x3C4: "REDUX",
    0x589: "SHFL",
    0x989: "SHFL",
    0xF89: "SHFL",
    0x389: "SHFL",
    0x947: "BRA",
    0x547: "BRA",
}
OTHER_SINCE_100 = {0x235}  # an addition there, HFMA2 before
WIDTHS = {4: ".32", 5: ".64", 6: ".128"}  # bits 73-75 of a load or store
LDGSTS_WIDTHS_SINCE_100 = {0: ".32", 2: ".64", 4: ".128"}
SPILLS_SINCE_100 = 64  # bytes per thread that are let pass on 10.0 and 12.0, for which no kernel was tuned
WITH_WIDTH = {"LDG", "STG", "LDS", "STS", "LDL", "STL", "LDGSTS"}
TMA = {"UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED"}
# What a word of a variant's name promises: any one of the instructions.
PROMISES = {
    "tma": TMA,
    "bulk": {"UBLKCP", "UBLKRED"},
    "tensor": {"UTMALDG"},
    "wgmma": {"HGMMA"},
    "async": {"LDGSTS"} | TMA,
    "multicast": TMA,
}
RESERVED_SHARED = 1024  # bytes of every block that belong to the system, in the symbols from compute capability 9.0 on
# Where an instruction is not there its function of the device layer does something else or nothing, and a line that
# names it asks for nothing.
SINCE_90 = TMA | {
    "UBLKPF",
    "UTMAPF",
    "UTMACCTL",
    "UTMACMDFLUSH",
    "SYNCS",
    "HGMMA",
    "WARPGROUP",
    "USETMAXREG",
    "STSM",
    "UCGABAR_ARV",
    "UCGABAR_WAIT",
    "STAS",
    "ACQBULK",
    "PREEXIT",
    "ELECT",
}

INFO_REGISTERS, INFO_FRAME = 0x2F, 0x11  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE of .nv.info


def fail(text):
    sys.exit("FAILED: " + text)


def opcode(low, arch):
    """Which instruction of the table begins with these 8 bytes."""
    return None if arch >= 100 and low & 0xFFF in OTHER_SINCE_100 else OPCODES.get(low & 0xFFF)


class Kernel:
    def __init__(self, name, code, arch):
        self.name = name
        self.registers = self.shared = self.frame = 0
        self.counts = collections.Counter()
        self.instructions = []  # (offset, name) of those in the table
        for at in range(0, len(code) - 15, 16):
            low, high = struct.unpack_from("<QQ", code, at)
            word = opcode(low, arch)
            if word is None:
                continue
            self.instructions.append((at, word))
            self.counts[word] += 1
            if word in WITH_WIDTH:
                widths = LDGSTS_WIDTHS_SINCE_100 if arch >= 100 and word == "LDGSTS" else WIDTHS
                self.counts[word + widths.get(high >> 9 & 7, ".small")] += 1

    def misses(self, wanted):
        """The words of "UTMALDG,HGMMA|HMMA,!MEMBAR" that do not hold: all of them, | any of, ! none of."""
        for word in filter(None, wanted.split(",")):
            if word.startswith("!"):
                if self.counts[word[1:]]:
                    yield word
            elif not any(self.counts[choice] for choice in word.split("|")):
                yield word


def architectures(path):
    """The kernels of an object by name, by architecture."""
    with open(path, "rb") as file:
        data = file.read()
    made = collections.defaultdict(dict)
    for arch, elf in cubins(data):
        made[arch].update(kernels_of(elf, arch))
    return made


def kernels_of(elf, arch):
    """Kernels of an ELF file by name."""
    found = {}
    table = {name: (content, size) for name, _, content, size in sections(elf)}
    symbols, strings = table[".symtab"][0], table[".strtab"][0]
    names = []
    for at in range(0, len(symbols), 24):
        (start,) = struct.unpack_from("<I", symbols, at)
        names.append(strings[start : strings.index(b"\0", start)].decode())
    for name, (content, _) in table.items():
        if name.startswith(".text."):
            found[name[6:]] = Kernel(name[6:], content, arch)
    for name, (_, size) in table.items():
        if name.startswith(".nv.shared.") and name[11:] in found:
            found[name[11:]].shared = max(0, size - (RESERVED_SHARED if arch >= 90 else 0))
    info, at = table.get(".nv.info", (b"", 0))[0], 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if form == 4 and attribute in (INFO_REGISTERS, INFO_FRAME):
            symbol, value = struct.unpack_from("<II", info, at + 4)
            if names[symbol] in found:
                setattr(found[names[symbol]], "registers" if attribute == INFO_REGISTERS else "frame", value)
        at += 4 + (size if form == 4 else 0)
    return found


def describe(kernel):
    words = " ".join(f"{word}:{count}" for word, count in sorted(kernel.counts.items()))
    return f"{kernel.name}: {kernel.registers} registers, {kernel.shared} B static shared, {kernel.frame} B stack\n    {words}"


class Line:
    """What the line of a variant declares."""

    def __init__(self, definitions, name):
        with open(definitions, encoding="utf-8") as file:
            lines = [line for line in file if re.match(rf"TMAOPS_VARIANT\(\w+, {name}, cuda,", line)]
        if len(lines) != 1:
            fail(f"{definitions} has {len(lines)} lines for {name}")

        def attribute(word, pattern, default=None):
            match = re.search(word + r"\(" + pattern + r"\)", lines[0])
            if not match and default is not None:
                return default
            if not match:
                fail(f"the line of {name} declares no {word}(...)")
            return match.group(1)

        self.registers, self.shared = int(attribute("regs", r"(\d+)")), int(attribute("smem", r"(\d+)"))
        self.spills = int(attribute("spills", r"(\d+)", "0"))
        self.wanted = attribute("sass", r'"([^"]*)"')
        self.arch = lines[0].split(", ")[3]


def check_variant(path, definitions, name, *neighbours):
    line = Line(definitions, name)
    found = collections.defaultdict(list)
    for part in path.split(";"):
        for arch, kernels in architectures(part).items():
            found[arch] += kernels.values()
    if not found:
        fail(f"no machine code of {name} in {path}")
    problems = [
        f"compute capability {arch // 10}.{arch % 10}: {problem}"
        for arch, kernels in sorted(found.items())
        for problem in check_kernels(arch, kernels, line, name, neighbours)
    ]
    if problems:
        fail("\n        ".join(problems))


def check_kernels(arch, found, line, name, neighbours):
    """What is wrong with the kernels of a variant for one architecture."""

    def in_namespace(kernel, variant):
        return f"{len(variant)}{variant}" in kernel.name  # as mangled

    shared_kernels = []  # of the room's headers: any variant here may launch them, so each line holds for them
    if neighbours:
        shared_kernels = [
            kernel for kernel in found if not any(in_namespace(kernel, variant) for variant in (name, *neighbours))
        ]
        found = [kernel for kernel in found if in_namespace(kernel, name)]
    if not found:
        yield f"no kernel of {name}"
    total = Kernel(name, b"", arch)
    for kernel in found:
        total.counts.update(kernel.counts)
    for kernel in found + shared_kernels:
        print(f"{arch}: {describe(kernel)}")
        allowed = max(line.spills, SPILLS_SINCE_100 if arch >= 100 else 0)
        if kernel.frame > allowed or not kernel.frame and (kernel.counts["LDL"] or kernel.counts["STL"]):
            yield (
                f"{kernel.name} keeps {kernel.frame} B per thread in local memory (spills or an array indexed at "
                f"run time), spills({line.spills}) is declared: {kernel.counts['LDL']} loads, {kernel.counts['STL']} stores"
            )
        if arch == 90 and kernel.registers > line.registers:  # the same code takes some more or fewer on other GPUs
            yield f"{kernel.name} uses {kernel.registers} registers, regs({line.registers}) is declared"
        if kernel.shared > line.shared:
            yield f"{kernel.name} has {kernel.shared} B of static shared memory, smem({line.shared}) is declared"
    for word in total.misses(line.wanted):
        if arch >= 90 or word not in SINCE_90:
            yield f'sass("{line.wanted}") is declared, and {word} does not hold for the kernels together'
    if line.arch == "sm80":
        for word in sorted(TMA | {"HGMMA"} if arch >= 90 else SINCE_90):
            if total.counts[word]:
                yield f"{word} is in a kernel of sm80"
    for word in name.split("_"):
        if word in PROMISES and not any(total.counts[choice] for choice in PROMISES[word]):
            yield f"the name says {word}, and no kernel contains any of {', '.join(sorted(PROMISES[word]))}"


def check_device_layer(path, source):
    with open(source, encoding="utf-8") as file:
        expected = re.findall(r'EXPECT_SASS\(\s*"([^"]+)",\s*(\w+),', file.read())
    found = architectures(path)[90]
    problems = []
    for wanted, name in expected:
        kernel = found.get("sass_" + name)
        if kernel is None:
            problems.append(f"sass_{name} is not in the object")
            continue
        problems += [f"{name}: {word} does not hold; it has {dict(kernel.counts)}" for word in kernel.misses(wanted)]
    print(f"{len(expected)} functions checked")
    if not expected or problems:
        fail("\n        ".join(problems) or f"no EXPECT_SASS in {source}")


def main(arguments):
    if arguments[:1] == ["list"] and len(arguments) == 2:
        for arch, found in architectures(arguments[1]).items():
            for kernel in found.values():
                print(f"{arch}: {describe(kernel)}")
    elif arguments[:1] == ["variant"] and len(arguments) >= 4:
        check_variant(*arguments[1:])
    elif arguments[:1] == ["device_layer"] and len(arguments) == 3:
        check_device_layer(*arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
