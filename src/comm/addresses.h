#pragma once
// Sockets and addresses by which the ranks of a run find each other. No torch.

#include <optional>
#include <string>
#include <string_view>

#include "src/base/unique_fd.h"

namespace ferry {

/** A socket that listens for the ranks that come to the store. */
struct StoreSocket {
  UniqueFd fd;
  int port = 0;
};
/** Listens at an address of this host (numbers, no name), or at all of them where `address` is
 * empty; port 0 takes a free one. A launcher may pass the socket on to rank 0, so that nobody else
 * gets the port in between: the socket closes at exec, a dup2 of it does not. Throws Error(machine)
 * where the port is taken. */
StoreSocket listen_for_ranks(const std::string& address, int port);

/** The addresses, in numbers, of the way to a port of a host: this host's end and the other. */
struct Route {
  std::string own, other;
};
/** Nothing is sent. Empty where the name is not known or no way leads there. */
std::optional<Route> find_route(const std::string& host, int port);

/** 127.x.x.x or ::1. */
bool is_loopback(std::string_view address);

}  // namespace ferry
