"""Finds the machine code in objects made by nvcc: no GPU and no disassembler needed.

An nvcc object carries a fat binary (section .nv_fatbin) with one ELF file per architecture.
"""

import struct

SECTION_NOBITS = 8
FATBIN_MAGIC, FATBIN_ELF = 0xBA55ED50, 2


class Compressed(Exception):
    """The machine code is there and cannot be read."""


def sections(elf):
    """(name, type, content or None, size) of every section of an ELF64 file."""
    (offset,) = struct.unpack_from("<Q", elf, 0x28)
    entry, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * entry) for i in range(count)]
    table = headers[names][4]
    for name, kind, _, _, at, size, _, _, _, _ in headers:
        end = elf.index(b"\0", table + name)
        content = None if kind == SECTION_NOBITS else elf[at : at + size]
        yield elf[table + name : end].decode(), kind, content, size


def cubins(data):
    """The architecture (90) and content of every ELF file inside an object's fat binary."""
    for name, _, content, _ in sections(data):
        if name != ".nv_fatbin":
            continue
        at = 0
        while at + 16 <= len(content):
            magic, _, header, size = struct.unpack_from("<IHHQ", content, at)
            if magic != FATBIN_MAGIC:
                at += 8  # padding between containers
                continue
            item, end = at + header, at + header + size
            while item < end:
                kind, _, item_header, item_size = struct.unpack_from("<HHIQ", content, item)
                (item_arch,) = struct.unpack_from("<I", content, item + 28)
                if kind == FATBIN_ELF:
                    elf = content[item + item_header : item + item_header + item_size]
                    if elf[:4] != b"\x7fELF":
                        raise Compressed("the device code is compressed; compile with --no-compress")
                    yield item_arch, elf
                item += item_header + item_size
            at = end
