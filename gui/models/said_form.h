#pragma once
// A sentence of the service with names in it, found by its form: "%1 free of %2".

#include <QRegularExpression>
#include <QString>
#include <QStringList>
#include <optional>

namespace ferry::gui {

class SaidForm {
 public:
  explicit SaidForm(const char* form);
  /** The texts at %1, %2, ... of the form; nullopt where `said` has another form. */
  std::optional<QStringList> parts_of(const QString& said) const;

 private:
  QRegularExpression pattern_;
};

/** `words` with the parts at %1, %2, ... A part may have "%2" in it. */
QString filled(const QString& words, const QStringList& parts);

}  // namespace ferry::gui
