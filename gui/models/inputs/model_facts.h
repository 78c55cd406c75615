#pragma once
// The model of a run for the user: which ones are on this machine, and what one is. Reads files, so
// it belongs in a thread.

#include <QMap>
#include <QString>
#include <QStringList>
#include <vector>

#include "src/config/config.h"

namespace ferry::gui {

struct ModelHere {
  QString name;  ///< as the option model_name_or_path takes it
  QString place, directory;
  QString family;        ///< model_type of its config.json; empty: unreadable
  int64_t n_params = 0;  ///< 0: not known
  QString problem;       ///< why it cannot be trained; empty: it can
};
/** Those of `ferry doctor`'s list. */
std::vector<ModelHere> models_here();

struct ModelFacts {
  QString key;        ///< of the option that names the model
  QString problem;    ///< why a run cannot begin with it; empty: it can
  QString hub_name;   ///< by which a hub may have it, where it is not here
  QString directory;  ///< empty: not on this machine
  QString family;     ///< empty: the shape is not known either
  bool is_decoder = false, is_drawn = false;
  int n_layers = 0;
  int64_t n_params = 0, width = 0, vocabulary = 0, max_positions = 0;
  QStringList tasks;  ///< as the option task names them; empty: not known
  QString task_problem;
  /** Values in force where nothing is set, by key: of the model's family. */
  QMap<QString, QString> defaults;
};
/** Never throws: what is wrong is in the answer. */
ModelFacts read_model_facts(const config::Config& config);

/** "22.7 M", "1.24 B" */
QString count_text(int64_t count);

}  // namespace ferry::gui
