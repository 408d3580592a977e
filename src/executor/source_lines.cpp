// From an address in a kernel to its line, by addr2line of the binutils that the compiler needs anyway.
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "executor/findings.hpp"

namespace tmaops::executor {
namespace {

struct Module {
  std::uintptr_t address = 0;  // what is looked for
  std::uintptr_t base = 0;
  std::string file;
};

int find_module(dl_phdr_info* info, std::size_t /*size*/, void* given) {
  auto& module = *static_cast<Module*>(given);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || module.address < begin || module.address >= begin + part.p_memsz) continue;
    module.base = info->dlpi_addr;
    module.file = info->dlpi_name != nullptr && *info->dlpi_name != 0 ? info->dlpi_name : "/proc/self/exe";
    return 1;
  }
  return 0;
}

/// What is between a kernel and the executor says nothing about the kernel.
bool of_the_layer(const std::string& frame) {
  for (const char* folder : {"/src/executor/", "/src/device/", "/tmaops/executor/", "/tmaops/device/", "/include/c++/"})
    if (frame.find(folder) != std::string::npos && frame.find(".cu:") == std::string::npos) return true;
  return frame.starts_with("??");
}

std::string look_up(const void* address) {
  Module module;
  module.address = reinterpret_cast<std::uintptr_t>(address);
  if (dl_iterate_phdr(&find_module, &module) == 0) return "?";
  if (module.file == "/proc/self/exe") {
    std::array<char, 4096> path{};
    if (const auto length = readlink("/proc/self/exe", path.data(), path.size() - 1); length > 0)
      module.file.assign(path.data(), static_cast<std::size_t>(length));
  }
  std::array<char, 32> offset{};
  // The address is that behind the call.
  std::snprintf(offset.data(), offset.size(), "%#lx", static_cast<unsigned long>(module.address - module.base - 1));
  const std::string command = "addr2line -i -e '" + module.file + "' " + offset.data() + " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), &pclose);
  if (!output) return "?";
  std::string all;
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), output.get()) != nullptr) {
    std::string frame(line.data());
    while (!frame.empty() && (frame.back() == '\n' || frame.back() == ' ')) frame.pop_back();
    if (const auto more = frame.find(" (discriminator"); more != std::string::npos) frame.resize(more);
    if (of_the_layer(frame)) continue;
    // The last two parts of the path tell kernels apart, which all lie in a kernel.cu.
    if (auto slash = frame.rfind('/'); slash != std::string::npos && slash > 0)
      if (slash = frame.rfind('/', slash - 1); slash != std::string::npos) frame.erase(0, slash + 1);
    all += (all.empty() ? "" : " < ") + frame;
  }
  return all.empty() ? "?" : all;
}

}  // namespace

std::string source_line(const void* address) {
  static std::map<const void*, std::string> known;
  if (address == nullptr) return "?";
  const auto found = known.find(address);
  return found != known.end() ? found->second : known.emplace(address, look_up(address)).first->second;
}

}  // namespace tmaops::executor
