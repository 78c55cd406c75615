#include "src/comm/addresses.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "src/base/error.h"

namespace ferry {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses look_up_host(const std::string& host, int port, int family, int flags) {
  addrinfo hints = {};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (::getaddrinfo(host.c_str(), service.c_str(), &hints, &found) != 0) return nullptr;
  return Addresses(found);
}

std::string in_numbers(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text = {};
  ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

}  // namespace

StoreSocket listen_for_ranks(const std::string& address, int port) {
  const auto refuse = [&](const char* action) {
    const int code = errno;
    if (code == EADDRINUSE)
      throw Error(Fault::machine, "comm.listen", fmt::format("port {} of this host is taken", port),
                  "MASTER_PORT (--master-port) gives the run another one, on all hosts; `ss -ltnp` "
                  "shows which program has it");
    throw Error(Fault::machine, "comm.listen",
                fmt::format("{} at port {}{}{}: {}", action, port, address.empty() ? "" : " of ",
                            address, std::strerror(code)));
  };
  // One socket for both families, where the host has IPv6.
  const bool any = address.empty();
  Addresses found =
      look_up_host(any ? "::" : address, port, AF_UNSPEC, AI_NUMERICHOST | AI_PASSIVE);
  FERRY_CHECK(found, "'{}' is no address in numbers", address);
  StoreSocket socket{UniqueFd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  if (any && !socket.fd) {
    found = look_up_host("0.0.0.0", port, AF_UNSPEC, AI_NUMERICHOST | AI_PASSIVE);
    socket.fd = UniqueFd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  if (!socket.fd) refuse("cannot open a socket");
  const int on = 1, off = 0;
  // A run that ended a moment ago does not hold its port.
  ::setsockopt(socket.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (any && found->ai_family == AF_INET6)
    ::setsockopt(socket.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(socket.fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.fd.get(), SOMAXCONN) != 0)
    refuse("cannot listen");
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  if (::getsockname(socket.fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
    refuse("cannot listen");
  socket.port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                                  : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return socket;
}

std::optional<Route> find_route(const std::string& host, int port) {
  // Hosts that have both families reach each other by IPv4 more often.
  for (int family : {AF_INET, AF_INET6}) {
    const Addresses found = look_up_host(host, port, family, 0);
    for (const addrinfo* other = found.get(); other; other = other->ai_next) {
      const UniqueFd socket(::socket(other->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      sockaddr_storage own = {};
      socklen_t size = sizeof own;
      if (socket && ::connect(socket.get(), other->ai_addr, other->ai_addrlen) == 0 &&
          ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
        return Route{in_numbers(reinterpret_cast<sockaddr*>(&own), size),
                     in_numbers(other->ai_addr, other->ai_addrlen)};
    }
  }
  return std::nullopt;
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace ferry
