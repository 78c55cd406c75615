#include "src/runs/control_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "src/base/error.h"

namespace ferry::runs {

namespace fs = std::filesystem;

void fail_at_socket(const fs::path& path, std::string_view doing, int code) {
  throw Error(Fault::machine, "runs.control",
              fmt::format("'{}' could not be {}: {}", path.string(), doing,
                          std::generic_category().message(code)),
              "set XDG_RUNTIME_DIR to a directory of your own");
}

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) fail_at_socket(path, "used", ENAMETOOLONG);
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  return address;
}

UniqueFd make_socket(const fs::path& path, int flags) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) fail_at_socket(path, "opened", errno);
  return fd;
}

}  // namespace ferry::runs
