// What a GPU does while arms are timed, from NVIDIA's management library, loaded at run time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace asdbench {

/// Bits of nvmlClocksThrottleReasons (nvml.h) with our names; idle (1) is no reason.
struct ThrottleReason {
  std::uint64_t bit;
  const char* name;
  bool harmless;  // the plain power cap voids nothing (specs: measurement, section 2)
};
inline constexpr std::array<ThrottleReason, 8> kThrottleReasons = {
    {{0x2, "application_clocks", false},
     {0x4, "power_cap", true},
     {0x8, "hardware_slowdown", false},
     {0x10, "sync_boost", false},
     {0x20, "software_thermal", false},
     {0x40, "hardware_thermal", false},
     {0x80, "power_brake", false},
     {0x100, "display_clock", false}}};

/// One look at the device; what it does not tell is absent.
struct GpuReading {
  std::optional<double> sm_mhz, memory_mhz, temperature_c, power_w, memory_mib;
  std::optional<std::uint64_t> throttle_reasons;
  std::optional<std::int64_t> foreign_processes;  // computing on it beside this one
};

/// The first device that CUDA would take (CUDA_VISIBLE_DEVICES by number or UUID). Nothing is set.
class Nvml {
 public:
  /// Where `library` cannot be loaded, or tells no device, `why_not` says so and every reading is
  /// empty: no error.
  explicit Nvml(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& why_not() const { return why_not_; }  // "" when the device can be read
  /// "NVIDIA H200, driver 565.57.01"; "" when it cannot.
  const std::string& device() const { return device_; }
  GpuReading read() const;

 private:
  struct Library;
  void open(const std::string& library);

  std::unique_ptr<Library> library_;
  std::string why_not_, device_;
};

}  // namespace asdbench
