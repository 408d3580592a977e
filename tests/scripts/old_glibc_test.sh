#!/bin/sh
# What a compiler on a newer system asks the C library for is in what the wheel is linked with: old_glibc_test.sh SOURCES
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 "$1/cmake/old_glibc.py" "$folder" >/dev/null
cat >"$folder/use.cpp" <<'END'
extern "C" {
long read_long(const char*, char**, int) __asm__("__isoc23_strtol");
unsigned long read_unsigned(const char*, char**, int) __asm__("__isoc23_strtoul");
long long read_long_long(const char*, char**, int) __asm__("__isoc23_strtoll");
unsigned long long read_unsigned_long_long(const char*, char**, int) __asm__("__isoc23_strtoull");
int read_format(const char*, const char*, ...) __asm__("__isoc23_sscanf");
}
int main() {
  int first = 0, second = 0;
  const bool scanned = read_format("42 7", "%d %d", &first, &second) == 2 && first == 42 && second == 7;
  return scanned && read_long("-5", nullptr, 0) == -5 && read_unsigned("6", nullptr, 10) == 6 &&
                 read_long_long("-7", nullptr, 10) == -7 && read_unsigned_long_long("0x8", nullptr, 16) == 8
             ? 0
             : 1;
}
END
c++ -Wall -Wextra -Werror "$folder/use.cpp" "$folder/missing.cpp" -Wl,--allow-shlib-undefined,--no-as-needed "$folder/libc.so.6" -o "$folder/use"
"$folder/use"
