#include "bench/measure/shared_library.hpp"

#include <dlfcn.h>

namespace tmaops::bench {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (void* found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); found != nullptr) {
      handle_ = found;
      name_ = name;
      problem_.clear();
      return;
    }
    const char* why = dlerror();
    if (problem_.empty() && why != nullptr) problem_ = why;
  }
}

void* SharedLibrary::address(const char* symbol) const { return handle_ == nullptr ? nullptr : dlsym(handle_, symbol); }

}  // namespace tmaops::bench
