#pragma once
// The program that trains: it holds LibTorch, which commands and app do without.

#include <filesystem>
#include <optional>

namespace ferry::service {

/** ferry-trainer: $FERRY_TRAINER, else beside $FERRY or this program (installed: ../libexec/ferry;
 * in the build tree: ../train, of the app ../../src/train). nullopt when there is none. Throws
 * Error(usage) when FERRY_TRAINER names no program. */
std::optional<std::filesystem::path> find_trainer();
/** The same for measuring. Throws Error(machine) where there is none. */
std::filesystem::path find_measuring_trainer();

}  // namespace ferry::service
