// Symbols are looked up one by one, so that an older driver leaves out figures, not the record.
#include "runners/throughput/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "eval/core/params.h"

namespace asdbench {
namespace {

// The part of nvml.h that is used: names and layouts are NVIDIA's interface, stable since 11.0.
using Device = void*;
using Status = int;
constexpr Status kSuccess = 0;
constexpr Status kInsufficientSize = 7;
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;
constexpr unsigned kTextBytes = 96;

struct Memory {
  unsigned long long total, free, used;  // bytes
};

struct Process {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

/// A symbol of the library; null where it has none of the names.
template <typename Function>
Function* find(void* handle, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* symbol = dlsym(handle, name)) return reinterpret_cast<Function*>(symbol);
  }
  return nullptr;
}

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  Device device = nullptr;
  bool begun = false;

  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  Status (*by_index)(unsigned, Device*) = nullptr;
  Status (*by_uuid)(const char*, Device*) = nullptr;
  Status (*name)(Device, char*, unsigned) = nullptr;
  Status (*driver)(char*, unsigned) = nullptr;
  Status (*clock)(Device, int, unsigned*) = nullptr;
  Status (*temperature)(Device, int, unsigned*) = nullptr;
  Status (*power)(Device, unsigned*) = nullptr;
  Status (*memory)(Device, Memory*) = nullptr;
  Status (*throttle)(Device, unsigned long long*) = nullptr;
  Status (*processes)(Device, unsigned*, Process*) = nullptr;

  ~Library() {
    if (begun && shutdown != nullptr) shutdown();
    if (handle != nullptr) dlclose(handle);
  }

  void look_up() {
    init = find<Status()>(handle, {"nvmlInit_v2"});
    shutdown = find<Status()>(handle, {"nvmlShutdown"});
    by_index = find<Status(unsigned, Device*)>(handle, {"nvmlDeviceGetHandleByIndex_v2"});
    by_uuid = find<Status(const char*, Device*)>(handle, {"nvmlDeviceGetHandleByUUID"});
    name = find<Status(Device, char*, unsigned)>(handle, {"nvmlDeviceGetName"});
    driver = find<Status(char*, unsigned)>(handle, {"nvmlSystemGetDriverVersion"});
    clock = find<Status(Device, int, unsigned*)>(handle, {"nvmlDeviceGetClockInfo"});
    temperature = find<Status(Device, int, unsigned*)>(handle, {"nvmlDeviceGetTemperature"});
    power = find<Status(Device, unsigned*)>(handle, {"nvmlDeviceGetPowerUsage"});
    memory = find<Status(Device, Memory*)>(handle, {"nvmlDeviceGetMemoryInfo"});
    throttle = find<Status(Device, unsigned long long*)>(
        handle,
        {"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetCurrentClocksEventReasons"});
    processes = find<Status(Device, unsigned*, Process*)>(
        handle, {"nvmlDeviceGetComputeRunningProcesses_v3"});
  }

  std::optional<double> number(Status (*function)(Device, int, unsigned*), int which) const {
    unsigned value = 0;
    if (function == nullptr || function(device, which, &value) != kSuccess) return std::nullopt;
    return value;
  }

  /// Processes beside this one. Absent where our own is not among them: the list then is of another
  /// namespace of process ids, and nobody could be told from us.
  std::optional<std::int64_t> foreign() const {
    if (processes == nullptr) return std::nullopt;
    std::vector<Process> list(64);
    for (int attempt = 0; attempt < 2; ++attempt) {
      auto count = static_cast<unsigned>(list.size());
      const Status status = processes(device, &count, list.data());
      if (status == kInsufficientSize) {
        list.resize(std::min<std::size_t>(std::size_t{count} * 2, 65'536));
        continue;
      }
      if (status != kSuccess || count > list.size()) return std::nullopt;
      if (count == 0) return 0;
      const auto own = static_cast<unsigned>(getpid());
      const bool seen = std::any_of(list.begin(), list.begin() + count,
                                    [&](const Process& process) { return process.pid == own; });
      if (!seen) return std::nullopt;
      return std::int64_t{count} - 1;
    }
    return std::nullopt;
  }
};

Nvml::Nvml(const std::string& library) {
  library_ = std::make_unique<Library>();
  open(library);
  if (!why_not_.empty()) library_.reset();
}

Nvml::~Nvml() = default;

void Nvml::open(const std::string& library) {
  Library& lib = *library_;
  lib.handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (lib.handle == nullptr) {
    const char* reason = dlerror();
    why_not_ = reason != nullptr ? reason : library + " cannot be loaded";
    return;
  }
  lib.look_up();
  if (lib.init == nullptr || lib.by_index == nullptr) {
    why_not_ = library + " lacks nvmlInit_v2 or nvmlDeviceGetHandleByIndex_v2";
    return;
  }
  if (const Status status = lib.init(); status != kSuccess) {
    why_not_ = fmt::format("{}: nvmlInit_v2 returned {}", library, status);
    return;
  }
  lib.begun = true;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string wanted = visible == nullptr || *visible == '\0' ? "0" : visible;
  wanted.resize(std::min(wanted.size(), wanted.find(',')));
  const std::optional<std::int64_t> index = parse_integer(wanted);
  Status status = -1;
  if (index && *index >= 0) {
    status = lib.by_index(static_cast<unsigned>(*index), &lib.device);
  } else if (lib.by_uuid != nullptr) {
    status = lib.by_uuid(wanted.c_str(), &lib.device);
  }
  if (status != kSuccess) {
    why_not_ = fmt::format("{}: no device {} (status {})", library, wanted, status);
    return;
  }
  std::array<char, kTextBytes> text = {};
  device_ = "device " + wanted;
  if (lib.name != nullptr && lib.name(lib.device, text.data(), kTextBytes - 1) == kSuccess) {
    device_ = text.data();
  }
  text = {};
  if (lib.driver != nullptr && lib.driver(text.data(), kTextBytes - 1) == kSuccess) {
    device_ += fmt::format(", driver {}", text.data());
  }
}

GpuReading Nvml::read() const {
  GpuReading reading;
  if (!library_) return reading;
  const Library& lib = *library_;
  reading.sm_mhz = lib.number(lib.clock, kClockSm);
  reading.memory_mhz = lib.number(lib.clock, kClockMemory);
  reading.temperature_c = lib.number(lib.temperature, kTemperatureGpu);
  unsigned milliwatts = 0;
  if (lib.power != nullptr && lib.power(lib.device, &milliwatts) == kSuccess) {
    reading.power_w = milliwatts / 1000.0;
  }
  Memory memory = {};
  if (lib.memory != nullptr && lib.memory(lib.device, &memory) == kSuccess) {
    reading.memory_mib = static_cast<double>(memory.used) / (1 << 20);
  }
  unsigned long long reasons = 0;
  if (lib.throttle != nullptr && lib.throttle(lib.device, &reasons) == kSuccess) {
    reading.throttle_reasons = reasons;
  }
  reading.foreign_processes = lib.foreign();
  return reading;
}

}  // namespace asdbench
