#pragma once

namespace orrery {

/// What random draws need of libm, from the four operations and square roots of IEEE arithmetic, so
/// that the same seed draws the same on every machine; libm's results differ by their last bits
/// from one processor to the next. Within 1e-15 of the value (`portable_math_test.cpp`).

/// The natural logarithm of a positive, finite number.
double portable_log(double x);
/// e^x; 0 below -700, and at the most e^700.
double portable_exp(double x);

}  // namespace orrery
