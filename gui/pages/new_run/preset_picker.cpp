#include "gui/pages/new_run/preset_picker.h"

#include <QtWidgets>

#include "gui/models/text.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

QString field(const PresetModel& presets, int row, PresetModel::Role role) {
  return presets.index(row).data(role).toString();
}

/** Title, purpose, and what it takes, one below the other. */
class PresetDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QSize size = QStyledItemDelegate::sizeHint(option, index);
    const int lines = index.parent().isValid() ? 3 : 1;
    size.setHeight(lines * option.fontMetrics.height() + option.fontMetrics.height() / 2);
    return size;
  }

  void paint(QPainter* painter,
             const QStyleOptionViewItem& given,
             const QModelIndex& index) const override {
    if (!index.parent().isValid()) return QStyledItemDelegate::paint(painter, given, index);
    QStyleOptionViewItem option = given;
    initStyleOption(&option, index);
    option.text.clear();
    QStyle* const style = option.widget ? option.widget->style() : QApplication::style();
    style->drawControl(QStyle::CE_ItemViewItem, &option, painter, option.widget);
    const bool is_selected = option.state & QStyle::State_Selected;
    const QColor strong =
        option.palette.color(is_selected ? QPalette::HighlightedText : QPalette::Text);
    const QColor quiet =
        option.palette.color(is_selected ? QPalette::HighlightedText : QPalette::PlaceholderText);
    const int line = option.fontMetrics.height();
    QRect rect = option.rect.adjusted(line / 4, line / 4, -line / 2, 0);
    rect.setHeight(line);
    painter->save();
    const auto draw = [&](const QString& text, const QColor& colour, bool is_bold) {
      QFont font = option.font;
      font.setBold(is_bold);
      painter->setFont(font);
      painter->setPen(colour);
      const QString shown = QFontMetrics(font).elidedText(text, Qt::ElideRight, rect.width());
      draw_words(*painter, rect, Qt::AlignLeading | Qt::AlignVCenter | Qt::TextSingleLine, shown);
      rect.translate(0, line);
    };
    draw(index.data(PresetModel::title_role).toString(), strong, true);
    draw(index.data(PresetModel::purpose_role).toString(), strong, false);
    draw(index.data(PresetModel::plan_role).toString(), quiet, false);
    painter->restore();
  }
};

/** The third line: card, plan, and what this machine lacks. */
QString facts_line(const PresetModel& presets, int row) {
  if (const QString problem = field(presets, row, PresetModel::problem_role); !problem.isEmpty())
    return problem;
  QStringList parts{field(presets, row, PresetModel::card_role)};
  for (const auto role : {PresetModel::plan_role, PresetModel::lacks_role})
    if (const QString part = field(presets, row, role); !part.isEmpty()) parts << part;
  return parts.join(QStringLiteral(" · "));
}

/** A button whose text begins where lines begin, and that shows that a list is under it. */
class ListButton : public QPushButton {
 public:
  using QPushButton::QPushButton;

 protected:
  void paintEvent(QPaintEvent*) override {
    QStylePainter painter(this);
    QStyleOptionButton option;
    initStyleOption(&option);
    const QString text = std::exchange(option.text, {});
    painter.drawControl(QStyle::CE_PushButton, option);
    const int em = fontMetrics().averageCharWidth(), side = fontMetrics().height();
    const QRect inside = rect().adjusted(em, 0, -em, 0);
    QStyleOption arrow;
    arrow.initFrom(this);
    const QRect place(inside.right() - side / 2, (height() - side / 2) / 2, side / 2, side / 2);
    arrow.rect = QStyle::visualRect(layoutDirection(), inside, place);
    painter.drawPrimitive(QStyle::PE_IndicatorArrowDown, arrow);
    const QRect words =
        QStyle::visualRect(layoutDirection(), inside, inside.adjusted(0, 0, -side, 0));
    const QString shown = fontMetrics().elidedText(text, Qt::ElideRight, words.width());
    painter.drawItemText(words, Qt::AlignLeading | Qt::AlignVCenter, palette(), isEnabled(), shown,
                         QPalette::ButtonText);
  }
};

QString task_name(const QString& task) {
  if (task == "classification") return PresetPicker::tr("Classify texts");
  if (task == "token-classification") return PresetPicker::tr("Tag words");
  if (task == "question-answering") return PresetPicker::tr("Answer questions from a text");
  if (task == "causal-lm") return PresetPicker::tr("Write texts");
  if (task == "preference") return PresetPicker::tr("Prefer better answers");
  if (task == "mlm") return PresetPicker::tr("Adapt an encoder to texts");
  return PresetPicker::tr("Files that are no presets");
}

}  // namespace

PresetList::PresetList(PresetModel& presets, QWidget* parent)
    : QFrame(parent, Qt::Popup), presets_(presets) {
  setObjectName("preset_list");
  setFrameShape(QFrame::StyledPanel);
  search_ = new QLineEdit;
  search_->setObjectName("preset_search");
  search_->setPlaceholderText(tr("Search presets: a model, a task, a card"));
  search_->setAccessibleName(tr("Search presets"));
  search_->setClearButtonEnabled(true);
  search_->installEventFilter(this);
  fits_ = new QCheckBox(tr("Only presets that fit this machine"));
  fits_->setObjectName("preset_fits");
  tree_ = new QTreeWidget;
  tree_->setObjectName("preset_tree");
  tree_->setAccessibleName(tr("Presets"));
  tree_->setHeaderHidden(true);
  tree_->setRootIsDecorated(false);
  tree_->setItemsExpandable(false);
  tree_->setIndentation(0);
  tree_->setUniformRowHeights(false);
  tree_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  tree_->setItemDelegate(new PresetDelegate(tree_));
  none_ = quiet_label(tr("No preset has these words."));
  none_->hide();
  auto* const layout = new QVBoxLayout(this);
  layout->addWidget(search_);
  layout->addWidget(fits_);
  layout->addWidget(tree_, 1);
  layout->addWidget(none_);
  connect(search_, &QLineEdit::textChanged, this, &PresetList::fill);
  connect(search_, &QLineEdit::returnPressed, this, &PresetList::choose_current);
  connect(fits_, &QCheckBox::toggled, this, &PresetList::fill);
  connect(tree_, &QTreeWidget::itemActivated, this, &PresetList::choose_current);
  connect(tree_, &QTreeWidget::itemClicked, this, &PresetList::choose_current);
  const auto refill = [this] {
    if (isVisible()) fill();
  };
  connect(&presets_, &QAbstractItemModel::modelReset, this, refill);
  connect(&presets_, &QAbstractItemModel::dataChanged, this, refill);
}

void PresetList::open_below(QWidget* button) {
  fill();
  const int em = fontMetrics().averageCharWidth();
  const QWidget* const window = button->window();
  resize(std::max(button->width(), std::min(140 * em, window->width() * 3 / 4)),
         std::min(34 * fontMetrics().height(), window->height() * 3 / 4));
  QPoint corner(0, button->height());
  if (layoutDirection() == Qt::RightToLeft) corner.setX(button->width() - width());
  move(button->mapToGlobal(corner));
  show();
  search_->selectAll();
  search_->setFocus();
}

void PresetList::fill() {
  const auto* const chosen = tree_->currentItem();
  const QString was = chosen ? chosen->data(0, PresetModel::name_role).toString() : QString();
  tree_->clear();
  QMap<QString, QTreeWidgetItem*> groups;
  const QStringList words = search_->text().toCaseFolded().split(' ', Qt::SkipEmptyParts);
  QTreeWidgetItem* first = nullptr;
  QTreeWidgetItem* again = nullptr;
  for (const char* task : {"classification", "token-classification", "question-answering",
                           "causal-lm", "preference", "mlm", ""}) {
    for (int row = 0; row < presets_.rowCount(); ++row) {
      const QModelIndex index = presets_.index(row);
      if (field(presets_, row, PresetModel::task_role) != task) continue;
      if (fits_->isChecked() && !field(presets_, row, PresetModel::lacks_role).isEmpty()) continue;
      QString all = task_name(task);
      for (const auto role :
           {PresetModel::name_role, PresetModel::title_role, PresetModel::purpose_role,
            PresetModel::model_role, PresetModel::task_role, PresetModel::card_role})
        all += ' ' + field(presets_, row, role);
      all = all.toCaseFolded();
      if (!std::all_of(words.begin(), words.end(),
                       [&](const QString& word) { return all.contains(word); }))
        continue;
      QTreeWidgetItem*& group = groups[task];
      if (!group) {
        group = new QTreeWidgetItem(tree_, {task_name(task)});
        group->setFlags(Qt::ItemIsEnabled);
        group->setFont(0, bold_font(tree_->font()));
        group->setForeground(0, palette().color(QPalette::Link));
      }
      auto* const item = new QTreeWidgetItem(group);
      const bool is_users = index.data(PresetModel::is_users_role).toBool();
      const QString title = field(presets_, row, PresetModel::title_role);
      // Titles need not differ; the name is what it was saved as.
      const QString name = field(presets_, row, PresetModel::name_role);
      const QString shown = !is_users       ? title
                            : title == name ? tr("%1 (yours)").arg(isolated(name))
                                            : tr("%1: %2 (yours)", "name and title of a preset")
                                                  .arg(isolated(name), isolated(title));
      item->setData(0, PresetModel::name_role, field(presets_, row, PresetModel::name_role));
      item->setData(0, PresetModel::title_role, shown);
      item->setData(0, PresetModel::purpose_role, field(presets_, row, PresetModel::purpose_role));
      item->setData(0, PresetModel::plan_role, facts_line(presets_, row));
      item->setToolTip(0, facts_line(presets_, row));
      item->setData(0, Qt::AccessibleTextRole, index.data(Qt::AccessibleTextRole));
      if (!presets_.settings(row)) item->setFlags(Qt::ItemIsEnabled);
      if (!first && presets_.settings(row)) first = item;
      if (field(presets_, row, PresetModel::name_role) == was) again = item;
    }
  }
  tree_->expandAll();
  if (QTreeWidgetItem* const item = again ? again : first) tree_->setCurrentItem(item);
  none_->setVisible(groups.isEmpty());
}

void PresetList::choose_current() {
  const auto* const item = tree_->currentItem();
  const QString name = item ? item->data(0, PresetModel::name_role).toString() : QString();
  if (name.isEmpty() || !(item->flags() & Qt::ItemIsSelectable)) return;
  hide();
  emit chosen(name);
}

bool PresetList::eventFilter(QObject* watched, QEvent* event) {
  // Arrows in the search line go through the list.
  if (event->type() == QEvent::KeyPress) {
    const auto* const key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Down || key->key() == Qt::Key_Up || key->key() == Qt::Key_PageDown ||
        key->key() == Qt::Key_PageUp) {
      QCoreApplication::sendEvent(tree_, event);
      return true;
    }
  }
  return QFrame::eventFilter(watched, event);
}

PresetPicker::PresetPicker(PresetModel& presets, QWidget* parent)
    : QWidget(parent), presets_(presets) {
  button_ = new ListButton;
  button_->setObjectName("preset_button");
  button_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  more_ = new QToolButton;
  more_->setObjectName("preset_more");
  more_->setText(QStringLiteral("⋯"));
  more_->setAccessibleName(tr("Manage presets"));
  more_->setToolTip(tr("Save these settings as a preset; copy, rename or delete one"));
  more_->setPopupMode(QToolButton::InstantPopup);
  make_menu();
  auto* const row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(button_, 1);
  row->addWidget(more_);
  list_ = new PresetList(presets, this);
  connect(button_, &QPushButton::clicked, this, [this] { list_->open_below(button_); });
  connect(list_, &PresetList::chosen, this, &PresetPicker::chosen);
  connect(&presets_, &PresetModel::loaded, this, &PresetPicker::update_button);
  update_button();
}

void PresetPicker::make_menu() {
  auto* const menu = new QMenu(this);
  save_ = menu->addAction(tr("&Save settings as a preset…"), this, &PresetPicker::save);
  save_->setObjectName("preset_save");
  menu->addSeparator();
  copy_ = menu->addAction(tr("&Copy this preset…"), this, [this] {
    ask_name(tr("Copy preset"), current_ + "-copy", [this](const QString& name) {
      const QString trouble = presets_.copy(current_, name);
      // Its settings are those of the one before: a copy is made to be changed.
      if (trouble.isEmpty()) set_current(name.trimmed());
      return trouble;
    });
  });
  copy_->setObjectName("preset_copy");
  rename_ = menu->addAction(tr("&Rename this preset…"), this, [this] {
    ask_name(tr("Rename preset"), current_, [this](const QString& name) {
      const QString trouble = presets_.rename(current_, name);
      if (trouble.isEmpty()) set_current(name.trimmed());
      return trouble;
    });
  });
  rename_->setObjectName("preset_rename");
  remove_ = menu->addAction(tr("&Delete this preset"), this, [this] {
    const QString name = current_;
    if (const QString trouble = presets_.remove(name); !trouble.isEmpty())
      return emit failed(trouble);
    emit said(tr("The preset “%1” is deleted.").arg(isolated(name)));
    set_current({});
  });
  remove_->setObjectName("preset_delete");
  more_->setMenu(menu);
}

void PresetPicker::set_current(const QString& name) {
  current_ = name;
  is_edited_ = false;
  update_button();
}

void PresetPicker::set_edited(bool edited) {
  if (is_edited_ == edited) return;
  is_edited_ = edited;
  update_button();
}

void PresetPicker::update_button() {
  const int row = presets_.row_of(current_);
  const bool is_known = row >= 0;
  const bool is_users = is_known && presets_.index(row).data(PresetModel::is_users_role).toBool();
  const QString title = is_known && !is_users
                            ? presets_.index(row).data(PresetModel::title_role).toString()
                            : current_;
  const QString text = current_.isEmpty() ? tr("Choose a preset…")
                       : is_edited_       ? tr("Preset: %1 (changed)").arg(title)
                                          : tr("Preset: %1").arg(title);
  button_->setText(text);
  button_->setAccessibleName(text);
  button_->setToolTip(is_known ? facts_line(presets_, row) : QString());
  copy_->setEnabled(is_known);
  rename_->setEnabled(is_users);
  remove_->setEnabled(is_users);
  rename_->setToolTip(is_users ? QString() : tr("Presets that come with Ferry stay as they are."));
  remove_->setToolTip(rename_->toolTip());
}

void PresetPicker::ask_name(const QString& title,
                            const QString& name,
                            std::function<QString(const QString&)> done) {
  auto* const dialog = new QDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setObjectName("preset_name_dialog");
  dialog->setWindowTitle(title);
  auto* const line = new QLineEdit(name);
  line->setObjectName("preset_name");
  line->setMinimumWidth(fontMetrics().averageCharWidth() * 40);
  auto* const label = new TextLabel(tr("&Name"));
  label->setBuddy(line);
  auto* const error = new ErrorLabel;
  error->setObjectName("preset_name_error");
  auto* const buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
  auto* const layout = new QVBoxLayout(dialog);
  layout->addWidget(label);
  layout->addWidget(line);
  layout->addWidget(error);
  layout->addStretch(1);
  layout->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  connect(buttons, &QDialogButtonBox::accepted, dialog, [dialog, line, error, done] {
    const QString trouble = done(line->text());
    if (trouble.isEmpty()) return dialog->accept();
    error->set_error(trouble);
    line->setFocus();
  });
  line->selectAll();
  dialog->open();
}

void PresetPicker::save() {
  const auto config = settings ? settings() : std::nullopt;
  if (!config) return emit failed(tr("Fix what is wrong first: a preset holds valid settings."));
  ask_name(tr("Save settings as a preset"), is_edited_ ? current_ : QString(),
           [this, config](const QString& name) {
             // Under its own name a preset of the user's is replaced, any other is not.
             const QString trouble =
                 presets_.save(name, *config, name, /*replaces=*/name.trimmed() == current_);
             if (trouble.isEmpty()) set_current(name.trimmed());
             return trouble;
           });
}

}  // namespace ferry::gui
