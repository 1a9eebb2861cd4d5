// A management library with one device whose figures come from the environment: what NVIDIA's own
// says, without a GPU.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

unsigned long long setting(const char* name, unsigned long long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

int device = 0;

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the library's own names
struct nvmlMemory_t {
  unsigned long long total, free, used;
};
struct nvmlProcessInfo_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};

extern "C" {
int nvmlInit_v2() { return static_cast<int>(setting("FAKE_NVML_INIT", 0)); }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index != 0) return 2;
  *handle = &device;
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (std::strcmp(uuid, "GPU-fake") != 0) return 6;
  *handle = &device;
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::strncpy(name, "Fake GPU", length);
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::strncpy(version, "1.2.3", length);
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1980 : 2619;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned*) { return 3; }  // not supported
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 345'600;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, nvmlMemory_t* memory) {
  *memory = {.total = 4ULL << 30, .free = 1ULL << 30, .used = 3ULL << 30};
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = setting("FAKE_NVML_THROTTLE", 0);
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, nvmlProcessInfo_t* infos) {
  const auto running = static_cast<unsigned>(setting("FAKE_NVML_PROCESSES", 1));
  const unsigned room = *count;
  *count = running;
  if (running > room) return 7;  // insufficient size
  for (unsigned i = 0; i < running; ++i) {
    infos[i] = {};
    infos[i].pid = i == running - 1 && std::getenv("FAKE_NVML_OTHER_NAMESPACE") == nullptr
                       ? static_cast<unsigned>(getpid())
                       : 4'000'000 + i;
  }
  return 0;
}
}
// NOLINTEND(readability-identifier-naming)
