#pragma once
// Which instruction set the CPU kernels use. Chosen once at first use: the best that CPU and
// operating system support, or what FERRY_SIMD=avx2|avx512|scalar asks for. Programs call level()
// at start, so that a wrong FERRY_SIMD is reported there and not from a worker thread.

#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::simd {

enum class Level : uint8_t { scalar, avx2, avx512 };

/** "scalar", "avx2", "avx512". */
std::string_view level_name(Level level);

/** The level in use. First call: throws Error(usage) when FERRY_SIMD is no level, Error(machine)
 * when it is one that this machine lacks. */
Level level();
inline std::string_view level_name() {
  return level_name(level());
}

/** The best level that this machine supports. */
Level best_level();

/** The features that this machine lacks for the level ("avx512f, avx512bw"); empty if none. */
std::string missing_for(Level level);

/** Uses this level from now on; for tests and benchmarks, while no kernel runs. Throws
 * Error(machine). */
void set_level(Level level);

}  // namespace ferry::simd
