#include "gui/pages/new_run/model_panel.h"

#include <QtWidgets>

#include "gui/models/text.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/data/hub_box.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

constexpr int kRowsShown_max = 10;

QString facts_text(const ModelFacts& facts) {
  if (facts.family.isEmpty()) return ModelPanel::tr("Choose a model to see what it is.");
  const QString kind = facts.is_decoder
                           ? ModelPanel::tr("%1, a decoder").arg(isolated(facts.family))
                           : ModelPanel::tr("%1, an encoder").arg(isolated(facts.family));
  return QStringList{
      kind,
      ModelPanel::tr("%1 layers").arg(facts.n_layers),
      ModelPanel::tr("%1 parameters").arg(isolated(count_text(facts.n_params))),
      ModelPanel::tr("width %1").arg(facts.width),
      ModelPanel::tr("%1 tokens known").arg(QLocale().toString(facts.vocabulary)),
      ModelPanel::tr("texts of up to %1 tokens").arg(QLocale().toString(facts.max_positions))}
      .join(QStringLiteral(" · "));
}

}  // namespace

ModelPanel::ModelPanel(QWidget* parent) : QWidget(parent) {
  models_ = new QTreeWidget;
  models_->setObjectName("models_here");
  models_->setAccessibleName(tr("Models on this machine"));
  models_->setHeaderLabels({tr("On this machine"), tr("Family"), tr("Parameters"), tr("Found in")});
  models_->headerItem()->setTextAlignment(2, kNumberSide);
  models_->setRootIsDecorated(false);
  models_->setUniformRowHeights(true);
  models_->setAlternatingRowColors(true);
  new ColumnFit(models_, {.rest = 3});
  none_ =
      quiet_label(tr("No model is on this machine yet. Type a name of the Hugging Face hub "
                     "(ORGANISATION/NAME) to download it, or browse to a directory."));
  none_->setWordWrap(true);
  none_->hide();
  facts_ = new TextLabel;
  facts_->setObjectName("model_facts");
  facts_->setWordWrap(true);
  facts_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  trains_ = quiet_label();
  trains_->setWordWrap(true);
  hub_ = new HubBox(HubDownload::Kind::model);
  connect(&hub_->download(), &HubDownload::fetched, this, &ModelPanel::fetched);

  auto* const layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(heading_label(tr("The chosen model")));
  layout->addWidget(facts_);
  layout->addWidget(trains_);
  layout->addWidget(hub_);
  layout->addSpacing(fontMetrics().height() / 2);
  layout->addWidget(models_);
  layout->addWidget(none_);
  layout->addStretch(1);
  const auto choose = [this](const QTreeWidgetItem* item) {
    if (item && (item->flags() & Qt::ItemIsEnabled))
      emit chosen(item->data(0, Qt::UserRole).toString());
  };
  connect(models_, &QTreeWidget::itemClicked, this, choose);
  connect(models_, &QTreeWidget::itemActivated, this, choose);
  show_facts({}, {});
}

void ModelPanel::show_models(const std::vector<ModelHere>& models) {
  models_->clear();
  for (const ModelHere& model : models) {
    auto* const item = new QTreeWidgetItem(
        models_, {model.name, model.family.isEmpty() ? tr("unreadable") : model.family,
                  model.n_params > 0 ? count_text(model.n_params) : QString(), model.place});
    item->setData(0, Qt::UserRole, model.name);
    item->setToolTip(0, model.problem.isEmpty() ? model.directory : model.problem);
    item->setTextAlignment(2, kNumberSide);
    if (model.problem.isEmpty()) continue;
    item->setFlags(item->flags() & ~Qt::ItemIsEnabled);
    item->setText(3, tr("cannot be trained: %1").arg(isolated(model.problem)));
    item->setToolTip(3, model.problem);
  }
  // As high as its rows: what is below a short list belongs to nobody.
  const int rows = std::clamp(static_cast<int>(models.size()), 3, kRowsShown_max);
  models_->setFixedHeight(models_->header()->sizeHint().height() +
                          rows * std::max(models_->sizeHintForRow(0), fontMetrics().height()) + 4);
  none_->setVisible(models.empty());
  models_->setVisible(!models.empty());
}

void ModelPanel::show_facts(const ModelFacts& facts, const QString& name) {
  facts_->setText(facts_text(facts));
  QString trains;
  if (!facts.tasks.isEmpty())
    trains = tr("It is trained for: %1.").arg(isolated(listed(facts.tasks)));
  if (!facts.directory.isEmpty())
    trains += ' ' + tr("It lies in %1.").arg(isolated(facts.directory));
  trains_->setText(trains.trimmed());
  trains_->setVisible(!trains.isEmpty());
  hub_->offer(facts.hub_name);
  const QSignalBlocker quiet(models_);
  models_->setCurrentItem(nullptr);
  for (int i = 0; i < models_->topLevelItemCount(); ++i)
    if (models_->topLevelItem(i)->data(0, Qt::UserRole).toString() == name)
      models_->setCurrentItem(models_->topLevelItem(i));
}

}  // namespace ferry::gui
