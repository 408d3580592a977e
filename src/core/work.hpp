// What a call runs, as a value: kernels with their parameters, memsets, or a function on the CPU.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/launch_site.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

class Workspace;

/// Blocks of a grid or threads of a block.
struct Extent {
  unsigned x, y, z;
  /// A plain number is an extent along x. NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Extent(unsigned along_x = 1, unsigned along_y = 1, unsigned along_z = 1)
      : x(along_x), y(along_y), z(along_z) {}
};

/// Shape and attributes of one launch.
struct LaunchShape {
  Extent grid{};
  Extent block{};
  int shared_bytes = 0;    // dynamic shared memory per block
  unsigned cluster = 1;    // blocks per cluster along x; grid.x must be a multiple
  bool dependent = false;  // programmatic dependent launch: may start before the kernel in front of it ends, so
                           // the kernel itself must call device::wait_for_previous_kernel before its first global read
};

#ifdef TMAOPS_EXECUTOR
namespace detail {
template <class Indices, class... Parameter>
struct KernelCall;
template <std::size_t... i, class... Parameter>
struct KernelCall<std::index_sequence<i...>, Parameter...> {
  /// Not checked, since the parameters lie in memory of the host, where a kernel may not read.
  [[gnu::no_sanitize("thread")]] static void run(const void* kernel, void** parameters) {
    reinterpret_cast<void (*)(Parameter...)>(const_cast<void*>(kernel))(
        *static_cast<std::remove_reference_t<Parameter>*>(parameters[i])...);
  }
};
}  // namespace detail
#endif

/// A kernel without its type.
struct KernelFunction {
  template <class... Parameter>
  explicit KernelFunction(void (*kernel)(Parameter...)) : handle(reinterpret_cast<const void*>(kernel)) {
#ifdef TMAOPS_EXECUTOR
    call = &detail::KernelCall<std::index_sequence_for<Parameter...>, Parameter...>::run;
#endif
  }
  const void* handle;  // the CUDA runtime's
  /// Calls it as a function of the host, for one thread. Null but in a build with the executor.
  void (*call)(const void* handle, void** parameters) = nullptr;
};

/// The parameters of a launch and their addresses. Copies share them: nobody writes them after they are made.
class KernelParameters {
 public:
  template <class... Parameter>
  explicit KernelParameters(std::shared_ptr<std::tuple<Parameter...>> values) : values_(values) {
    static_assert(sizeof...(Parameter) <= kMost);
    std::apply(
        [&](auto&... each) {
          std::size_t i = 0;
          ((addresses_[i++] = &each), ...);
        },
        *values);
  }
  /// As cudaLaunchKernelExC and cuLaunchKernelEx take them: both only read.
  void** addresses() const { return const_cast<void**>(addresses_.data()); }

 private:
  static constexpr std::size_t kMost = 6;
  std::shared_ptr<void> values_;
  std::array<void*, kMost> addresses_{};
};

/// What a call runs. A variant's plan() makes it; nothing decides after that.
class Work {
 public:
  struct Kernel {
    LaunchShape shape;
    KernelFunction function;
    KernelParameters parameters;
  };
  struct Memset {
    void* to;
    int byte;
    std::size_t bytes;
  };
  using Step = std::variant<Kernel, Memset>;

  /// Nothing to do: an empty problem.
  Work() = default;
  /// On the CPU. `call` may be run any number of times, by one thread at a time.
  explicit Work(std::function<void()> call) : call_(std::move(call)) {}
  /// On a GPU, for add() and add_memset(). `site` names the work in errors and holds its kernels to smem(...).
  /// `workspace` is what allocate() takes from, and must outlive the work's last run.
  Work(const LaunchSite& site, Device device, Workspace* workspace = nullptr)
      : site_(site), device_(device), workspace_(workspace) {}

  /// A kernel behind those added before. `given` becomes the kernel's own parameter types. A dependent launch becomes a
  /// plain one where kernels do not wait (has_dependent_launch).
  /// Throws Error internal when the shape asks for more shared memory than the site allows.
  template <class... Parameter, class... Given>
  void add(void (*kernel)(Parameter...), const LaunchShape& shape, Given&&... given) {
    add_to(steps_, kernel, shape, std::forward<Given>(given)...);
  }
  void add_memset(void* to, int byte, std::size_t bytes) { steps_.emplace_back(Memset{to, byte, bytes}); }
  /// The same for what fills memory that no step writes: a plan does it once, when it is made.
  template <class... Parameter, class... Given>
  void prepare(void (*kernel)(Parameter...), const LaunchShape& shape, Given&&... given) {
    add_to(preparation_, kernel, shape, std::forward<Given>(given)...);
  }
  void prepare_memset(void* to, int byte, std::size_t bytes) { preparation_.emplace_back(Memset{to, byte, bytes}); }
  /// Device memory for the kernels, at a multiple of 256 bytes. Throws Error device_out_of_memory.
  unsigned char* allocate(std::size_t bytes);

  /// Runs everything once: on a stream of the device, or on the CPU before it returns. Throws Error cuda_failed.
  void run(Stream stream) const;

  const LaunchSite& site() const { return site_; }
  Device device() const { return device_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Step>& preparation() const { return preparation_; }

 private:
  /// The shape as it can be launched. Throws as add() does.
  LaunchShape checked(LaunchShape shape) const;
  template <class... Parameter, class... Given>
  void add_to(std::vector<Step>& steps, void (*kernel)(Parameter...), const LaunchShape& shape, Given&&... given) {
    steps.emplace_back(
        Kernel{checked(shape), KernelFunction(kernel),
               KernelParameters(std::make_shared<std::tuple<Parameter...>>(std::forward<Given>(given)...))});
  }

  LaunchSite site_{""};
  Device device_{};
  Workspace* workspace_ = nullptr;
  std::vector<Step> preparation_;
  std::vector<Step> steps_;
  std::function<void()> call_;
};

/// `run` with a copy of what it is to work on: what most variants on the CPU are.
template <class Problem, class Arguments>
Work cpu_work(void (*run)(const Problem&, const Arguments&), const Problem& problem, const Arguments& arguments) {
  return Work([run, problem, arguments] { run(problem, arguments); });
}

/// Work that is made ready once and run many times: kernels are looked up, and become a graph when they are repeated on
/// one stream. Replaying it costs the host less than a launch (docs/findings/host.md, H2).
class RepeatedWork {
 public:
  /// Runs the work's preparation and waits for it, on a stream of the device. Throws Error cuda_failed, also when a
  /// kernel cannot be loaded.
  static std::unique_ptr<RepeatedWork> of(Work work, Stream stream = nullptr);
  virtual ~RepeatedWork() = default;
  RepeatedWork(const RepeatedWork&) = delete;
  RepeatedWork& operator=(const RepeatedWork&) = delete;
  /// As Work::run(), from any thread.
  virtual void run(Stream stream) const = 0;
  /// Takes work of the same problem on other memory in place of its own; nothing may run it meanwhile. From here on
  /// kernels are launched one by one, since a graph would have to be made again.
  virtual void rebind(Work work) = 0;

 protected:
  RepeatedWork() = default;
};

/// While one lives, nothing is repeated as a graph: for profilers that count launches.
class KernelsOneByOne {
 public:
  KernelsOneByOne();
  ~KernelsOneByOne();
  KernelsOneByOne(const KernelsOneByOne&) = delete;
  KernelsOneByOne& operator=(const KernelsOneByOne&) = delete;
  /// Whether one lives, in any thread.
  static bool wanted();
};

}  // namespace tmaops
