// CPU and operating system detection, FERRY_SIMD, and the choice of the kernel table.

#include "simd/level.h"

#include <cpuid.h>

#include <atomic>
#include <cstdlib>

#include "simd/kernel_table.h"
#include "src/base/error.h"

namespace ferry::simd {
namespace {

struct Cpuid {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Cpuid cpuid(unsigned leaf) {
  Cpuid r;
  __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);  // leaves zeros when the CPU has no such leaf
  return r;
}

/** XCR0: which register states the operating system saves. Needs OSXSAVE. */
uint64_t saved_states() {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

constexpr uint64_t kYmmStates = 0x6, kZmmStates = 0xe6;

/** Every feature that the compiler may use under the flags of the level's file. */
std::string find_missing(Level wanted) {
  if (wanted == Level::scalar) return {};
  std::string missing;
  const auto need = [&](bool has, std::string_view name) {
    if (has) return;
    if (!missing.empty()) missing += ", ";
    missing += name;
  };
  const Cpuid one = cpuid(1), seven = cpuid(7);
  const bool os_xsave = one.c & bit_OSXSAVE;
  const uint64_t states = os_xsave ? saved_states() : 0;
  need(one.c & bit_SSE3, "sse3");
  need(one.c & bit_SSSE3, "ssse3");
  need(one.c & bit_SSE4_1, "sse4.1");
  need(one.c & bit_SSE4_2, "sse4.2");
  need(one.c & bit_POPCNT, "popcnt");
  need(one.c & bit_AVX, "avx");
  need(one.c & bit_FMA, "fma");
  need(one.c & bit_F16C, "f16c");
  need(seven.b & bit_AVX2, "avx2");
  if (wanted == Level::avx512) {
    need(seven.b & bit_AVX512F, "avx512f");
    need(seven.b & bit_AVX512BW, "avx512bw");
    need(seven.b & bit_AVX512DQ, "avx512dq");
    need(seven.b & bit_AVX512VL, "avx512vl");
    need((states & kZmmStates) == kZmmStates, "an operating system that saves zmm registers");
  } else {
    need((states & kYmmStates) == kYmmStates, "an operating system that saves ymm registers");
  }
  return missing;
}

const KernelTable& table_of(Level level) {
  switch (level) {
    case Level::avx512:
      return kAvx512Kernels;
    case Level::avx2:
      return kAvx2Kernels;
    case Level::scalar:
      break;
  }
  return kScalarKernels;
}

void require(Level wanted, std::string_view asked_by) {
  const std::string missing = missing_for(wanted);
  if (missing.empty()) return;
  throw Error(Fault::machine, "simd.level",
              std::string(asked_by) + " asks for " + std::string(level_name(wanted)) +
                  ", but this machine lacks " + missing,
              "unset FERRY_SIMD, or set it to " + std::string(level_name(best_level())));
}

Level first_level() {
  const char* text = std::getenv("FERRY_SIMD");
  if (text == nullptr || *text == '\0') return best_level();
  for (const Level wanted : {Level::scalar, Level::avx2, Level::avx512}) {
    if (level_name(wanted) != text) continue;
    require(wanted, "FERRY_SIMD");
    return wanted;
  }
  throw Error(
      Fault::usage, "simd.level",
      "FERRY_SIMD is '" + std::string(text) + "', expected avx2, avx512 or scalar",
      "unset it to use the best level of this machine, " + std::string(level_name(best_level())));
}

/** Set at first use; a static of a function that throws is tried again by the next caller. */
std::atomic<Level>& current() {
  static std::atomic<Level> level = first_level();
  return level;
}

}  // namespace

std::string_view level_name(Level level) {
  switch (level) {
    case Level::avx512:
      return "avx512";
    case Level::avx2:
      return "avx2";
    case Level::scalar:
      break;
  }
  return "scalar";
}

std::string missing_for(Level level) {
  static const std::string missing_avx2 = find_missing(Level::avx2),
                           missing_avx512 = find_missing(Level::avx512);
  if (level == Level::avx512) return missing_avx512;
  return level == Level::avx2 ? missing_avx2 : std::string();
}

Level best_level() {
  for (const Level level : {Level::avx512, Level::avx2})
    if (missing_for(level).empty()) return level;
  return Level::scalar;
}

Level level() {
  return current().load(std::memory_order_relaxed);
}

void set_level(Level wanted) {
  require(wanted, "set_level");
  current().store(wanted, std::memory_order_relaxed);
}

const KernelTable& kernels() {
  return table_of(level());
}

}  // namespace ferry::simd
