// The exponential of float32 vectors, the same operations on every instruction set.
#pragma once

namespace asdbench::kernels {

/// exp(x) within 2 units in the last place for x in [-87, 88]; beyond, the value at that bound.
/// NaN stays NaN. Method: x = n ln 2 + r, a polynomial of degree 6 in r, and n into the exponent.
template <class Simd>
inline typename Simd::Float exponential(typename Simd::Float x) {
  using Float = typename Simd::Float;
  // The second operand is what max and min return for a NaN.
  x = Simd::min(Simd::broadcast(88.0f), Simd::max(Simd::broadcast(-87.0f), x));
  const Float n = Simd::round(Simd::multiply(x, Simd::broadcast(1.44269504f)));
  // ln 2 in two parts, the first with so few bits that n times it is exact (Cody and Waite).
  Float r = Simd::fma(n, Simd::broadcast(-0.693359375f), x);
  r = Simd::fma(n, Simd::broadcast(2.12194440e-4f), r);
  // Minimax coefficients of the Cephes library's expf.
  Float sum = Simd::broadcast(1.9875691500e-4f);
  sum = Simd::fma(sum, r, Simd::broadcast(1.3981999507e-3f));
  sum = Simd::fma(sum, r, Simd::broadcast(8.3334519073e-3f));
  sum = Simd::fma(sum, r, Simd::broadcast(4.1665795894e-2f));
  sum = Simd::fma(sum, r, Simd::broadcast(1.6666665459e-1f));
  sum = Simd::fma(sum, r, Simd::broadcast(5.0000001201e-1f));
  sum = Simd::add(Simd::fma(sum, Simd::multiply(r, r), r), Simd::broadcast(1.0f));
  return Simd::times_power_of_two(sum, n);
}

}  // namespace asdbench::kernels
