// A build without cpp-httplib.

#include "src/base/error.h"
#include "src/serve/server.h"

namespace ferry::serve {

class Server::Routes {};

Server::Server(ServerSettings) {
  throw Error(Fault::usage, "serve.listen", "this build has no HTTP server",
              "install cpp-httplib (libcpp-httplib-dev), or run scripts/setup, and build anew");
}

Server::~Server() = default;

int Server::port() const {
  return 0;
}

void Server::run(const Write&, const std::function<bool()>&) {}

bool has_server() {
  return false;
}

}  // namespace ferry::serve
