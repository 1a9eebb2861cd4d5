// What the machine did while a slot was timed: read at its begin and end and once a second between.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runners/throughput/nvml.h"

namespace asdbench {

/// One quantity over one slot. Names: core_mhz, load (1 minute), temperature_c, memory_mib of this
/// process; steal_share and foreign_share of all cores' time, which are differences of counters and
/// have one reading a slot. Of a GPU: gpu_sm_mhz, gpu_memory_mhz, gpu_temperature_c, gpu_power_w,
/// gpu_memory_mib, gpu_foreign_processes, and gpu_throttle_REASON, 1 while it held.
struct EnvironmentFigure {
  std::string name;
  std::int64_t samples = 0;
  double mean = 0, least = 0, most = 0;
};

/// Processor time of the machine and of this process, in clock ticks since their starts.
struct CpuTicks {
  double total = 0, busy = 0, steal = 0, own = 0;
};

/// The first line of /proc/stat; absent when it is none. `own` is left 0.
std::optional<CpuTicks> parse_cpu_ticks(const std::string& line);

/// One thread that sleeps but for some microseconds a second. What cannot be read is left out.
class EnvironmentSampler {
 public:
  /// `gpu`: the device to be read too; null for none.
  explicit EnvironmentSampler(std::unique_ptr<Nvml> gpu = nullptr);
  ~EnvironmentSampler();
  EnvironmentSampler(const EnvironmentSampler&) = delete;
  EnvironmentSampler& operator=(const EnvironmentSampler&) = delete;

  void begin_slot();
  std::vector<EnvironmentFigure> end_slot();

 private:
  void loop();
  void sample();  // with the lock held

  std::unique_ptr<Nvml> gpu_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false, timing_ = false;
  std::optional<CpuTicks> begin_;
  std::vector<EnvironmentFigure> figures_;
  std::thread thread_;
};

/// Why a group must not count: the mean frequency of cores or GPU differs between its arms by more
/// than 2 %, the GPU was throttled under one arm and not under another (but for the plain power
/// cap), or another process ran on it. "" when nothing speaks against it: what could not be read
/// cannot void. `arms[i]` ran with `figures[i]`.
std::string void_reason(const std::vector<std::size_t>& arms,
                        const std::vector<std::vector<EnvironmentFigure>>& figures);

}  // namespace asdbench
