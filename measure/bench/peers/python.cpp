#include "bench/peers/python.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/fail.hpp"
#include "tmaops/error.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::bench {

/// Memory that the other process can open through /proc while this one lives; the system takes it back by itself.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    file_ = memfd_create("tmaops-peers", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0) fail();
    memory_ = mmap(nullptr, std::max<std::size_t>(1, bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory_ == MAP_FAILED) fail();
  }
  ~SharedMemory() {
    if (memory_ != MAP_FAILED) munmap(memory_, std::max<std::size_t>(1, bytes_));
    if (file_ >= 0) close(file_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::string path() const { return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_); }

 private:
  [[noreturn]] void fail() {
    if (file_ >= 0) close(file_);
    tmaops::fail(ErrorCode::out_of_memory, "Python peers", "no shared memory of " + std::to_string(bytes_) + " bytes",
                 {});
  }
  std::size_t bytes_;
  int file_ = -1;
  void* memory_ = MAP_FAILED;
};

namespace {

constexpr double kStartTimeout = 120;   // importing torch on a cold disk
constexpr double kAnswerTimeout = 300;  // torch.compile takes a minute

std::string interpreter(const std::string& option) {
  if (!option.empty()) return option;
  const char* variable = std::getenv("TMAOPS_PYTHON");
  return variable != nullptr && *variable != '\0' ? variable : "python3";
}

/// The script beside the sources, or where an installed program has it.
std::string script() {
  std::error_code status;
  if (std::filesystem::exists(TMAOPS_PEER_SCRIPT, status)) return TMAOPS_PEER_SCRIPT;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", status);
  return program.parent_path().parent_path() / "share" / "tmaops" / "python_peers.py";
}

std::size_t byte_size(const TensorSpec& spec) {
  return static_cast<std::size_t>(spec.layout.size()) * size_of(spec.dtype);
}

}  // namespace

class PythonPeers::Peer : public Implementation {
 public:
  Peer(std::string name, PythonPeers& process)
      : Implementation(std::move(name), Kind::peer, ""), process_(process), number_(process.loaded_.size() - 1) {}
  Comparison verify(Workload& workload, int set, double tolerance) override {
    workload.poison(set);
    const auto& [memory, offsets] = process_.loaded_.at(number_);
    for (std::size_t i = 0; i < workload.tensors().size(); ++i)
      if (const TensorSpec& spec = workload.tensors()[i]; spec.output)
        std::memset(memory->data() + offsets[i], 0xFF, byte_size(spec));
    ask({{"command", "run"}, {"set", set}});
    for (std::size_t i = 0; i < workload.tensors().size(); ++i)
      if (const TensorSpec& spec = workload.tensors()[i]; spec.output) {
        std::memcpy(workload.host(spec.name, set).data, memory->data() + offsets[i], byte_size(spec));
        workload.put(spec.name, set);
      }
    return workload.check(set, tolerance > 0 ? tolerance : workload.peer_tolerance());
  }
  double seconds(std::int64_t first, std::int64_t count) override {
    return ask({{"command", "time"}, {"first", first}, {"count", count}})["seconds"];
  }
  nlohmann::json ask(nlohmann::json question) {
    question.update({{"workload", number_}, {"peer", name()}});
    return process_.lines_.ask(question, kAnswerTimeout);
  }

 private:
  PythonPeers& process_;
  std::size_t number_;  // of the workload there
};

PythonPeers::PythonPeers(const PythonSettings& settings)
    : lines_({interpreter(settings.interpreter), script()},
             // The first two halve OpenBLAS where a system sets them.
             {{"OPENBLAS_CORETYPE", ""},
              {"OPENBLAS_L2_SIZE", ""},
              {"OMP_NUM_THREADS", std::to_string(num_threads())},
              {"OPENBLAS_NUM_THREADS", std::to_string(num_threads())},
              {"PYTHONDONTWRITEBYTECODE", "1"}},
             settings.interrupted) {
  try {
    versions_ = lines_.ask({{"command", "hello"}, {"threads", num_threads()}}, kStartTimeout)["versions"];
  } catch (const Error& error) {
    if (error.code() != ErrorCode::variant_refuses) throw;
    fail(ErrorCode::cannot_read, interpreter(settings.interpreter), "", error.details().needed);
  }
}

void PythonPeers::load(const Workload& workload) {
  const CaseInfo& info = workload.info();
  nlohmann::json question{{"command", "load"},
                          {"workload", loaded_.size()},
                          {"operator", info.op},
                          {"case", info.name},
                          {"parameters", workload.peer_parameters()},
                          {"sets", workload.sets()},
                          {"device", tmaops::to_string(info.device)},
                          {"tensors", nlohmann::json::array()}};
  std::size_t total = 0;
  std::vector<std::size_t> offsets;
  for (const TensorSpec& spec : workload.tensors()) {
    offsets.push_back(total);
    total += (byte_size(spec) + 63) / 64 * 64;
  }
  const auto& [memory, offsets_of] = loaded_.emplace_back(std::make_shared<SharedMemory>(total), std::move(offsets));
  for (std::size_t i = 0; i < workload.tensors().size(); ++i) {
    const TensorSpec& spec = workload.tensors()[i];
    if (!spec.output) std::memcpy(memory->data() + offsets_of[i], workload.host(spec.name, 0).data, byte_size(spec));
    const auto rank = static_cast<std::size_t>(spec.layout.rank);
    question["tensors"].push_back(
        {{"name", spec.name},
         {"dtype", tmaops::to_string(spec.dtype)},
         {"shape", std::vector<std::int64_t>(spec.layout.shape.begin(), spec.layout.shape.begin() + rank)},
         {"strides", std::vector<std::int64_t>(spec.layout.strides.begin(), spec.layout.strides.begin() + rank)},
         {"offset", offsets_of[i]},
         {"output", spec.output}});
  }
  question["memory"] = {{"path", memory->path()}, {"bytes", total}};
  lines_.ask(question, kAnswerTimeout);
}

void PythonPeers::forget() {
  if (!loaded_.empty()) lines_.ask({{"command", "forget"}}, kAnswerTimeout);
  loaded_.clear();
}

std::unique_ptr<Implementation> PythonPeers::make(const std::string& peer) {
  auto made = std::make_unique<Peer>(peer, *this);
  made->ask({{"command", "make"}});
  return made;
}

}  // namespace tmaops::bench
