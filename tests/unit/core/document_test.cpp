#include "sim/core/document.hpp"

#include <gtest/gtest.h>

namespace orrery::document_test {
namespace {

Document example() {
  Table table{{{"plan", Align::left}, {"step"}}};
  table.add_row({"<a> & b", "1.2 s"});
  Document document;
  document.title("a model on a system\n  8 GPUs,\n  bf16\n");
  document.gap();
  document.table(table);
  document.heading("What follows");
  document.paragraph("A long sentence that\ngoes on.\n");
  document.lines("A  one\nB  two\n");
  document.command("orrery estimate --model 'x y'");
  return document;
}

TEST(Document, IsTheTextOfATerminal) {
  EXPECT_EQ(example().text(),
            "a model on a system\n  8 GPUs,\n  bf16\n\n  plan      step\n  <a> & b  1.2 s\nWhat "
            "follows\nA long sentence that\ngoes on.\nA  one\nB  two\n  orrery estimate --model "
            "'x y'\n");
}

// Nothing of it is markup, paragraphs flow, and lines stay lines.
TEST(Document, IsAPageWithoutItsTitle) {
  EXPECT_EQ(example().html(),
            "<table>\n<tr><th class=\"left\">plan</th><th>step</th></tr>\n<tr><td "
            "class=\"left\">&lt;a&gt; &amp; b</td><td>1.2 s</td></tr>\n</table>\n<h2>What "
            "follows</h2>\n<p class=\"note\">A long sentence that goes on.</p>\n<p class=\"note "
            "lines\">A  one\nB  two</p>\n<pre>orrery estimate --model 'x y'</pre>\n");
  EXPECT_EQ(example().name(), "a model on a system");
  EXPECT_EQ(example().about(), "8 GPUs, bf16");
}

TEST(Document, AppendsAnother) {
  Document both = example();
  both.append(example());
  EXPECT_EQ(both.text(), example().text() + example().text());
}

}  // namespace
}  // namespace orrery::document_test
