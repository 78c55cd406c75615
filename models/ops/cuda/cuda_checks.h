#pragma once
// Reports failures for the .cu files: nvcc cannot compile fmt's checked format strings, so the
// messages are made in cuda_checks.cpp.

namespace ferry::ops::cuda {

/** Our own bug unless `holds`: FERRY_CHECK with what was expected and the value seen. */
void expect(bool holds, const char* expectation, double value);
/** Throws Error(Fault::machine): CUDA refused `what` with this message. */
[[noreturn]] void launch_failed(const char* what, const char* message);

}  // namespace ferry::ops::cuda
