// The instruction set that the CPU kernels of this process use, chosen once at run time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace asdbench::kernels {

/// In rising order of speed. Results of one instruction set are the same bits on every machine;
/// between two of them sums may differ in the last places.
enum class Isa : std::uint8_t {
  kPlain,   // C++ without intrinsics
  kAvx2,    // AVX2, FMA and F16C
  kAvx512,  // AVX-512 F, BW, DQ and VL besides
};

/// "plain", "avx2", "avx512": the words of ASDBENCH_ISA.
std::string_view name_of(Isa isa);

/// Whether this build and this CPU, with its operating system, can run `isa`.
bool supported(Isa isa);

/// Whether the CPU has the dot products of integers, or of bf16, that some with AVX-512 have.
bool has_vnni();
bool has_bf16_dots();

/// Every supported set in rising order of speed; kPlain is always first.
std::vector<Isa> supported_isas();

/// The set that `wanted` asks for, or the fastest supported one when it is null.
///
/// Errors: IsaError when the name is unknown or the CPU lacks the set; there is no silent fallback.
Isa choose_isa(const char* wanted);

/// choose_isa(getenv("ASDBENCH_ISA")), decided at the first call and kept for the process.
Isa active_isa();

}  // namespace asdbench::kernels
