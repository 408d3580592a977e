// Libraries that are loaded when they are first needed and never linked, so that tmaops works without them.
#pragma once

#include <string>
#include <vector>

namespace tmaops::bench {

class SharedLibrary {
 public:
  /// Loads the first of these file names or paths that there is; nothing loaded when there is none.
  explicit SharedLibrary(const std::vector<std::string>& names);

  explicit operator bool() const { return handle_ != nullptr; }
  /// The loader's words about the first name; empty when a library was loaded.
  const std::string& problem() const { return problem_; }
  /// Name or path it was loaded by.
  const std::string& name() const { return name_; }

  /// A function of the library; null when it has none of this name or was not loaded.
  template <class Function>
  Function* function(const char* symbol) const {
    return reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;

  void* handle_ = nullptr;  // never closed: a profiler that has hooked itself into the driver cannot be taken out
  std::string name_;
  std::string problem_;
};

}  // namespace tmaops::bench
