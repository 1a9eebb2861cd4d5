// Reads /proc and /sys; nothing is set, and what is not there is no error.
#include "runners/throughput/environment.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

namespace asdbench {
namespace {

constexpr double kFrequencyLimit = 0.02;  // specs: measurement, section 2
const std::string kThrottlePrefix = "gpu_throttle_";

std::optional<double> first_number(const std::string& path) {
  std::ifstream in(path);
  double value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

/// Mean over the cores: what cpufreq says, else what /proc/cpuinfo does.
std::optional<double> core_mhz() {
  double sum = 0;
  int cores = 0;
  for (;; ++cores) {
    const auto khz =
        first_number(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cores));
    if (!khz) break;
    sum += *khz / 1000;
  }
  if (cores == 0) {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
      const auto colon = line.find(':');
      if (!line.starts_with("cpu MHz") || colon == std::string::npos) continue;
      std::istringstream value(line.substr(colon + 1));
      double mhz = 0;
      if (value >> mhz) {
        sum += mhz;
        ++cores;
      }
    }
  }
  if (cores == 0) return std::nullopt;
  return sum / cores;
}

/// The hottest thermal zone, in degrees Celsius.
std::optional<double> temperature() {
  std::optional<double> hottest;
  for (int zone = 0;; ++zone) {
    const auto milli = first_number(fmt::format("/sys/class/thermal/thermal_zone{}/temp", zone));
    if (!milli) return hottest;
    hottest = std::max(hottest.value_or(*milli / 1000), *milli / 1000);
  }
}

std::optional<double> resident_mib() {
  std::ifstream in("/proc/self/statm");
  double size = 0, resident = 0;
  if (!(in >> size >> resident)) return std::nullopt;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

std::optional<CpuTicks> read_ticks() {
  std::ifstream in("/proc/stat");
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  std::optional<CpuTicks> ticks = parse_cpu_ticks(line);
  rusage usage{};
  if (!ticks || getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  ticks->own = (seconds(usage.ru_utime) + seconds(usage.ru_stime)) *
               static_cast<double>(sysconf(_SC_CLK_TCK));
  return ticks;
}

void add(std::vector<EnvironmentFigure>& figures, const std::string& name,
         std::optional<double> value) {
  if (!value) return;
  auto found = std::find_if(figures.begin(), figures.end(),
                            [&](const EnvironmentFigure& figure) { return figure.name == name; });
  if (found == figures.end()) {
    figures.push_back(
        {.name = name, .samples = 1, .mean = *value, .least = *value, .most = *value});
    return;
  }
  ++found->samples;
  found->mean += (*value - found->mean) / static_cast<double>(found->samples);
  found->least = std::min(found->least, *value);
  found->most = std::max(found->most, *value);
}

void add(std::vector<EnvironmentFigure>& figures, const GpuReading& gpu) {
  add(figures, "gpu_sm_mhz", gpu.sm_mhz);
  add(figures, "gpu_memory_mhz", gpu.memory_mhz);
  add(figures, "gpu_temperature_c", gpu.temperature_c);
  add(figures, "gpu_power_w", gpu.power_w);
  add(figures, "gpu_memory_mib", gpu.memory_mib);
  if (gpu.foreign_processes) {
    add(figures, "gpu_foreign_processes", static_cast<double>(*gpu.foreign_processes));
  }
  if (!gpu.throttle_reasons) return;
  for (const ThrottleReason& reason : kThrottleReasons) {
    add(figures, kThrottlePrefix + reason.name, (*gpu.throttle_reasons & reason.bit) != 0 ? 1 : 0);
  }
}

/// Figures of one name by arm: the mean over its slots, and the largest reading.
struct ArmFigure {
  double sum = 0, most = 0;
  int slots = 0;
  double mean() const { return sum / slots; }
};
using ArmFigures = std::map<std::size_t, ArmFigure>;

ArmFigures by_arm(const std::string& name, const std::vector<std::size_t>& arms,
                  const std::vector<std::vector<EnvironmentFigure>>& figures) {
  ArmFigures out;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    for (const EnvironmentFigure& figure : figures[i]) {
      if (figure.name != name) continue;
      ArmFigure& arm = out[arms[i]];
      arm.sum += figure.mean;
      arm.most = std::max(arm.most, figure.most);
      ++arm.slots;
    }
  }
  return out;
}

std::string frequency_fault(const ArmFigures& arms, const char* what) {
  double least = HUGE_VAL, most = 0;
  for (const auto& [unused, arm] : arms) {
    least = std::min(least, arm.mean());
    most = std::max(most, arm.mean());
  }
  if (arms.empty() || most <= least * (1 + kFrequencyLimit)) return "";
  return fmt::format("{} frequency of the arms differs by {:.1f} %: {:.0f} to {:.0f} MHz", what,
                     100 * (most / least - 1), least, most);
}

std::string throttle_fault(const ArmFigures& arms, const char* reason) {
  std::size_t throttled = 0;
  for (const auto& [unused, arm] : arms) throttled += arm.most > 0 ? 1 : 0;
  if (throttled == 0 || throttled == arms.size()) return "";
  return fmt::format("the GPU was throttled ({}) under {} of {} arms", reason, throttled,
                     arms.size());
}

}  // namespace

std::optional<CpuTicks> parse_cpu_ticks(const std::string& line) {
  std::istringstream in(line);
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupts = 0, soft = 0, steal = 0;
  if (!(in >> name >> user >> nice >> system >> idle >> wait >> interrupts >> soft >> steal) ||
      name != "cpu") {
    return std::nullopt;
  }
  const double busy = user + nice + system + interrupts + soft;
  return CpuTicks{.total = busy + idle + wait + steal, .busy = busy, .steal = steal, .own = 0};
}

EnvironmentSampler::EnvironmentSampler(std::unique_ptr<Nvml> gpu)
    : gpu_(std::move(gpu)), thread_([this] { loop(); }) {}

EnvironmentSampler::~EnvironmentSampler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  thread_.join();
}

void EnvironmentSampler::loop() {
  std::unique_lock lock(mutex_);
  while (!stop_changed_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; })) {
    if (timing_) sample();
  }
}

void EnvironmentSampler::sample() {
  add(figures_, "core_mhz", core_mhz());
  add(figures_, "load", first_number("/proc/loadavg"));
  add(figures_, "temperature_c", temperature());
  add(figures_, "memory_mib", resident_mib());
  if (gpu_) add(figures_, gpu_->read());
}

void EnvironmentSampler::begin_slot() {
  const std::lock_guard lock(mutex_);
  figures_.clear();
  sample();
  begin_ = read_ticks();
  timing_ = true;
}

std::vector<EnvironmentFigure> EnvironmentSampler::end_slot() {
  const std::lock_guard lock(mutex_);
  timing_ = false;
  const std::optional<CpuTicks> end = read_ticks();
  sample();
  // A slot shorter than a tick has no shares.
  if (begin_ && end && end->total > begin_->total) {
    const double total = end->total - begin_->total;
    add(figures_, "steal_share", (end->steal - begin_->steal) / total);
    const double foreign = end->busy - begin_->busy - (end->own - begin_->own);
    add(figures_, "foreign_share", std::max(0.0, foreign) / total);
  }
  return figures_;
}

std::string void_reason(const std::vector<std::size_t>& arms,
                        const std::vector<std::vector<EnvironmentFigure>>& figures) {
  const auto figure = [&](const std::string& name) { return by_arm(name, arms, figures); };
  std::vector<std::string> faults = {frequency_fault(figure("core_mhz"), "core"),
                                     frequency_fault(figure("gpu_sm_mhz"), "GPU")};
  for (const ThrottleReason& reason : kThrottleReasons) {
    if (reason.harmless) continue;
    faults.push_back(throttle_fault(figure(kThrottlePrefix + reason.name), reason.name));
  }
  for (const auto& [unused, arm] : figure("gpu_foreign_processes")) {
    if (arm.most > 0) faults.emplace_back("another process ran on the GPU");
  }
  for (const std::string& fault : faults) {
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace asdbench
