<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>RunDetails</name>
    <message numerus="yes">
        <source>%1 (%n are kept)</source>
        <translation>
            <numerusform>%1 (%n is kept)</numerusform>
            <numerusform>%1 (%n are kept)</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>StartWords</name>
    <message numerus="yes">
        <source>%1, %n core(s)</source>
        <translation>
            <numerusform>%1, %n core</numerusform>
            <numerusform>%1, %n cores</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n step(s)</source>
        <translation>
            <numerusform>%n step</numerusform>
            <numerusform>%n steps</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::Chat</name>
    <message numerus="yes">
        <source>The context had no room for the first %n question(s).</source>
        <translation>
            <numerusform>The context had no room for the first %n question.</numerusform>
            <numerusform>The context had no room for the first %n questions.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::ComparePage</name>
    <message numerus="yes">
        <source>At most %n runs are compared</source>
        <translation>
            <numerusform>At most %n run are compared</numerusform>
            <numerusform>At most %n runs are compared</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::Curve</name>
    <message numerus="yes">
        <source>%1: %n points, last %2, falling</source>
        <translation>
            <numerusform>%1: %n point, last %2, falling</numerusform>
            <numerusform>%1: %n points, last %2, falling</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1: %n points, last %2, rising</source>
        <translation>
            <numerusform>%1: %n point, last %2, rising</numerusform>
            <numerusform>%1: %n points, last %2, rising</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1: %n points, last %2, steady</source>
        <translation>
            <numerusform>%1: %n point, last %2, steady</numerusform>
            <numerusform>%1: %n points, last %2, steady</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1: %n points, last %2</source>
        <translation>
            <numerusform>%1: %n point, last %2</numerusform>
            <numerusform>%1: %n points, last %2</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::DataPreview</name>
    <message numerus="yes">
        <source>%n token(s).</source>
        <translation>
            <numerusform>%n token.</numerusform>
            <numerusform>%n tokens.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The first step: %n sample(s),</source>
        <translation>
            <numerusform>The first step: %n sample,</numerusform>
            <numerusform>The first step: %n samples,</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n of them are trained on (underlined).</source>
        <translation>
            <numerusform>%n of them is trained on (underlined).</numerusform>
            <numerusform>%n of them are trained on (underlined).</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n of them are trained on.</source>
        <translation>
            <numerusform>%n of them is trained on.</numerusform>
            <numerusform>%n of them are trained on.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::ExportPage</name>
    <message numerus="yes">
        <source>%1
%2 in %n file(s). Each tensor was read back and is the same as in the run.</source>
        <translation>
            <numerusform>%1
%2 in %n file. Each tensor was read back and is the same as in the run.</numerusform>
            <numerusform>%1
%2 in %n files. Each tensor was read back and is the same as in the run.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::MainWindow</name>
    <message numerus="yes">
        <source>%n run(s) stay paused until an app is open again: %1.</source>
        <translation>
            <numerusform>%n run stays paused until an app is open again: %1.</numerusform>
            <numerusform>%n runs stay paused until an app is open again: %1.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The queue starts none of its %n run(s).</source>
        <translation>
            <numerusform>The queue does not start its %n run.</numerusform>
            <numerusform>The queue starts none of its %n runs.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::PlanPicture</name>
    <message numerus="yes">
        <source>%1 for %n step(s)</source>
        <translation>
            <numerusform>%1 for %n step</numerusform>
            <numerusform>%1 for %n steps</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::PlanView</name>
    <message numerus="yes">
        <source>The figures rest on %n assumption(s)</source>
        <translation>
            <numerusform>The figures rest on %n assumption</numerusform>
            <numerusform>The figures rest on %n assumptions</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunChooser</name>
    <message numerus="yes">
        <source>At most %n runs</source>
        <translation>
            <numerusform>At most %n run</numerusform>
            <numerusform>At most %n runs</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunsPage</name>
    <message numerus="yes">
        <source>%n run(s)</source>
        <translation>
            <numerusform>%n run</numerusform>
            <numerusform>%n runs</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 of %n run(s)</source>
        <translation>
            <numerusform>%1 of %n run</numerusform>
            <numerusform>%1 of %n runs</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n run(s) selected</source>
        <translation>
            <numerusform>%n run selected</numerusform>
            <numerusform>%n runs selected</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 and %n more</source>
        <comment>names of runs</comment>
        <translation>
            <numerusform>%1 and %n more</numerusform>
            <numerusform>%1 and %n more</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::SamplesPage</name>
    <message numerus="yes">
        <source>%n line(s) of samples are damaged and left out.</source>
        <translation>
            <numerusform>%n line of samples is damaged and left out.</numerusform>
            <numerusform>%n lines of samples are damaged and left out.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n token(s), %1. %2.</source>
        <translation>
            <numerusform>%n token, %1. %2.</numerusform>
            <numerusform>%n tokens, %1. %2.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n token(s), %1.</source>
        <translation>
            <numerusform>%n token, %1.</numerusform>
            <numerusform>%n tokens, %1.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::StepList</name>
    <message numerus="yes">
        <source>○ %n to do</source>
        <translation>
            <numerusform>○ %n to do</numerusform>
            <numerusform>○ %n to do</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>⚠ %n to fix</source>
        <translation>
            <numerusform>⚠ %n to fix</numerusform>
            <numerusform>⚠ %n to fix</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::TryItPage</name>
    <message numerus="yes">
        <source>%n found</source>
        <translation>
            <numerusform>%n found</numerusform>
            <numerusform>%n found</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The model says which of its %n label(s) suit the text: %1. How sure it is of each appears here.</source>
        <translation>
            <numerusform>The model says whether its %n label suits the text: %1. How sure it is appears here.</numerusform>
            <numerusform>The model says which of its %n labels suit the text: %1. How sure it is of each appears here.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The model chooses one of its %n label(s): %1. How sure it is of each appears here.</source>
        <translation>
            <numerusform>The model knows %n label: %1. How sure it is appears here.</numerusform>
            <numerusform>The model chooses one of its %n labels: %1. How sure it is of each appears here.</numerusform>
        </translation>
    </message>
</context>
</TS>
