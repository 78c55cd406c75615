// Precompiled for tests that use all of LibTorch's tensors: three quarters of the time that each of
// their files takes to compile.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
