#include "src/runs/directory/settings_file.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "src/base/crc32c.h"
#include "src/files/plain_file.h"
#include "src/files/write/atomic_file.h"

namespace ferry::runs {
namespace {

constexpr std::string_view kChecksumBegin = "\n# CRC-32C of all lines above: ";

std::string checksum_line(std::string_view text) {
  return fmt::format("{}{:08x}\n", kChecksumBegin, crc32c(std::as_bytes(std::span(text))));
}

}  // namespace

void write_settings_file(const std::filesystem::path& run, const std::string& settings) {
  write_text_file(run / "config.toml", settings + checksum_line(settings));
}

SettingsState check_settings_file(const std::filesystem::path& run) {
  const std::string text = read_text_file(run / "config.toml");
  const size_t line = text.rfind(kChecksumBegin);
  if (line == std::string::npos) return SettingsState::unchecked;
  return text.substr(line) == checksum_line(std::string_view(text).substr(0, line))
             ? SettingsState::as_written
             : SettingsState::changed;
}

}  // namespace ferry::runs
