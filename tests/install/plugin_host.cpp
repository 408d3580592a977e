// Runs a library of a client's.
#include <cstdio>
#include <cstring>

extern "C" const char* plugin_run();

int main() {
  const char* said = plugin_run();
  std::puts(said);
  return std::strcmp(said, "works") != 0;
}
