#pragma once
// A run's state as a shape, so that no colour alone tells it.

#include "gui/models/runs/run_words.h"

class QPainter;
class QRectF;

namespace ferry::gui {

/** Drawn in the pen's colour. */
void draw_run_shape(QPainter& painter, const QRectF& box, RunGroup group);

}  // namespace ferry::gui
