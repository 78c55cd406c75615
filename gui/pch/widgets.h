// Headers that most pages include.
#include <QtWidgets>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/config/config.h"
