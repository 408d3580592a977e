#!/usr/bin/env python3
"""Makes what a wheel for glibc 2.28 is linked with on a newer x86-64 system: old_glibc.py FOLDER. Prints the files.

A linker takes the newest version of a symbol of the C library, which an older system does not have. In FOLDER come libraries with the
names of the system's, without code, which have its symbols in the newest version that glibc 2.28 has; whoever is linked with them asks for
that one. They have all of them: a linker reads no second library of a name. What older systems do not have at all is in missing.cpp, to be
compiled in.
"""

import pathlib
import re
import subprocess
import sys

NEWEST = (2, 28)
# Where functions were before 2.34 put them into libc.so.6.
HOMES = {"libpthread.so.0": r"pthread_|sem_", "libdl.so.2": r"dl\w+$", "librt.so.1": r"shm_|mq_|aio_|timer_"}
MISSING = """\
// Made by cmake/old_glibc.py. Older systems have stat and its like under other names, and not what the C++ library asks for.
#define HIDDEN __attribute__((visibility("hidden")))
extern "C" {
HIDDEN char __libc_single_threaded = 0;
long syscall(long, ...);
HIDDEN int gettid() { return static_cast<int>(syscall(186)); }
int getentropy(void*, unsigned long);
HIDDEN unsigned arc4random() {
  unsigned drawn = 0;
  if (getentropy(&drawn, sizeof drawn) != 0) __builtin_trap();
  return drawn;
}
int vsscanf(const char*, const char*, __builtin_va_list);
HIDDEN int __isoc23_sscanf(const char* from, const char* format, ...) {
  __builtin_va_list to;
  __builtin_va_start(to, format);
  const int read = vsscanf(from, format, to);
  __builtin_va_end(to);
  return read;
}
"""
# What headers of 2.38 and newer call in the place of these: they read 0b101, too.
ISOC23 = {"strtol": "long", "strtoul": "unsigned long", "strtoll": "long long", "strtoull": "unsigned long long"}
STAT = (("stat", "const char* at", "at"), ("lstat", "const char* at", "at"), ("fstat", "int at", "at"))
STAT += (("fstatat", "int in, const char* at", "in, at"),)


def symbols(library):
    """(kind, size, name, version, whether it is the one that linkers take) of a library of the system."""
    path = subprocess.run(
        ["cc", f"-print-file-name={library}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    table = subprocess.run(["readelf", "-W", "--dyn-syms", path], capture_output=True, text=True, check=True).stdout
    line = r": \w+ +(\d+) (FUNC|IFUNC|OBJECT) .* (\w+)(@@?)GLIBC_([\d.]+)$"
    for size, kind, name, at, version in re.findall(line, table, re.MULTILINE):
        yield kind, int(size), name, tuple(int(part) for part in version.split(".")), at == "@@"


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    missing, wanted = MISSING, {}  # library -> version -> {name: size of an object, else 0}
    for name, parameters, given in STAT:
        for bits in ("", "64"):
            inner, more = f"__{name.replace('stat', 'xstat', 1)}{bits}", ", int flags" if name == "fstatat" else ""
            missing += f"int {inner}(int, {parameters}, void*{more});\n"
            passed = f"1, {given}, to{more.replace('int ', '')}"
            missing += f"HIDDEN int {name}{bits}({parameters}, void* to{more}) {{ return {inner}({passed}); }}\n"
            version = (2, 4) if name == "fstatat" else (2, 2, 5)
            wanted.setdefault("libc.so.6", {}).setdefault(version, {})[inner] = 0
    for name, kind in ISOC23.items():
        missing += f"{kind} {name}(const char*, char**, int);\n"
        missing += f"HIDDEN {kind} __isoc23_{name}(const char* from, char** end, int base) {{ return {name}(from, end, base); }}\n"
    missing += '}  // extern "C"\n'
    for library in ("libc.so.6", "libm.so.6"):
        found = {}
        for kind, size, name, version, taken in symbols(library):
            found.setdefault(name, {})[version] = (taken, size if kind == "OBJECT" else 0)
        for name, versions in found.items():
            old = [version for version in versions if version <= NEWEST]
            usual = [version for version, (taken, _) in versions.items() if taken]
            if old and usual:  # one that linkers take, and that 2.28 has
                version, moved = min(usual[0], max(old)), usual[0] > NEWEST
                home = next((home for home, pattern in HOMES.items() if moved and re.match(pattern, name)), library)
                wanted.setdefault(home, {}).setdefault(version, {})[name] = versions[version][1]
    files = []
    for library, versions in wanted.items():
        source, script, made = (folder / (library + end) for end in (".s", ".map", ""))
        lines, blocks = ['.section .note.GNU-stack,"",@progbits'], []
        for version, names in versions.items():
            blocks.append(f"GLIBC_{'.'.join(map(str, version))} {{ {' '.join(f'{name};' for name in names)} }};\n")
            for name, size in names.items():
                kind, section = ("object", ".data") if size else ("function", ".text")
                lines += [section, f".globl {name}", f".type {name},@{kind}", f".size {name},{size or 1}"]
                lines += [".balign 32", f"{name}: .zero {size or 1}"]
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        script.write_text("".join(blocks), encoding="utf-8")
        named = [f"-Wl,-soname,{library}", f"-Wl,--version-script,{script}"]
        subprocess.run(["cc", "-shared", "-nostdlib", *named, str(source), "-o", str(made)], check=True)
        files.append(str(made))
    source = folder / "missing.cpp"
    if not source.exists() or source.read_text(encoding="utf-8") != missing:
        source.write_text(missing, encoding="utf-8")
    print(";".join([str(source), *files]))


if __name__ == "__main__":
    main()
