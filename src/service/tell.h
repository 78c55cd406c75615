#pragma once

#include <functional>
#include <string>

namespace ferry::service {

/** Hears a note for the user, when it is found. */
using Tell = std::function<void(const std::string&)>;

}  // namespace ferry::service
