#include "gui/models/plan/what_if.h"

#include <algorithm>

#include "gui/models/text.h"

namespace ferry::gui {

namespace {

void put(config::Config& settings, const QString& key, const QString& value) {
  trouble_of([&] {
    settings.set(key.toStdString(), value.toStdString(),
                 {config::Source::command_line, "the memory plan"});
  });
}

}  // namespace

void WhatIf::set_machine(const QString& name) {
  machine_ = name;
  if (!is_elsewhere()) changes_.clear();
}

void WhatIf::change(const QString& key, const QString& value) {
  const auto known = std::ranges::find(changes_, key, &std::pair<QString, QString>::first);
  if (known != changes_.end())
    known->second = value;
  else
    changes_.emplace_back(key, value);
}

config::Config WhatIf::planned() const {
  config::Config settings = run_.value();
  put(settings, QStringLiteral("machine"), machine_);
  for (const auto& [key, value] : changes_)
    put(settings, key, value);
  return settings;
}

config::Config WhatIf::here() const {
  config::Config settings = run_.value();
  put(settings, QStringLiteral("machine"), QStringLiteral("auto"));
  return settings;
}

}  // namespace ferry::gui
