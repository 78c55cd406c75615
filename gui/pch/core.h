// Headers that most models include.
#include <QObject>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/config/config.h"
