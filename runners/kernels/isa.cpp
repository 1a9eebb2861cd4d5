// Asks the CPU what it can do and reads ASDBENCH_ISA.
#include "runners/kernels/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string>

#include "runners/kernels/errors.h"

namespace asdbench::kernels {
namespace {

constexpr Isa kAllIsas[] = {Isa::kPlain, Isa::kAvx2, Isa::kAvx512};

std::string names(const std::vector<Isa>& isas) {
  std::string text;
  for (const Isa isa : isas) {
    text += text.empty() ? "" : ", ";
    text += name_of(isa);
  }
  return text;
}

#if defined(__x86_64__)
/// Conversions of float16, which clang 16's builtin below does not know by name.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kPlain:
      return "plain";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

bool supported(Isa isa) {
#if defined(__x86_64__)
  // Asked once: under a hypervisor each CPUID instruction costs microseconds. The builtin also asks
  // the operating system whether it saves the wide registers.
  static const bool kHasAvx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  static const bool kHasAvx512 =
      kHasAvx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case Isa::kPlain:
      return true;
    case Isa::kAvx2:
      return kHasAvx2;
    case Isa::kAvx512:
      return kHasAvx512;
  }
  return false;
#else
  return isa == Isa::kPlain;
#endif
}

bool has_vnni() {
#if defined(__x86_64__)
  static const bool kHas = supported(Isa::kAvx512) && __builtin_cpu_supports("avx512vnni");
  return kHas;
#else
  return false;
#endif
}

bool has_bf16_dots() {
#if defined(__x86_64__)
  static const bool kHas = supported(Isa::kAvx512) && __builtin_cpu_supports("avx512bf16");
  return kHas;
#else
  return false;
#endif
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : kAllIsas) {
    if (supported(isa)) isas.push_back(isa);
  }
  return isas;
}

Isa choose_isa(const char* wanted) {
  const std::vector<Isa> usable = supported_isas();
  if (wanted == nullptr) return usable.back();
  for (const Isa isa : kAllIsas) {
    if (name_of(isa) != wanted) continue;
    if (supported(isa)) return isa;
    throw IsaError("ASDBENCH_ISA=" + std::string(wanted) +
                   ": this CPU or build lacks it; usable here: " + names(usable) +
                   "; unset the variable to let the program choose");
  }
  throw IsaError("ASDBENCH_ISA=" + std::string(wanted) +
                 ": unknown instruction set; usable here: " + names(usable) +
                 "; unset the variable to let the program choose");
}

Isa active_isa() {
  static const Isa kIsa = choose_isa(std::getenv("ASDBENCH_ISA"));
  return kIsa;
}

}  // namespace asdbench::kernels
