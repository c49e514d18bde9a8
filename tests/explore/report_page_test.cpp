// Reports in a Chromium without a screen and without a server: they are files. Skipped where there
// is none: apt-get install chromium.

#include <filesystem>
#include <fstream>

#include "tests/support/chromium.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::report_page_test {
namespace {

using Json = nlohmann::json;

class ReportPage : public testing::Test {
 protected:
  void SetUp() override {
    if (Chromium::program().empty()) GTEST_SKIP() << "needs apt-get install chromium";
    browser_ = std::make_unique<Chromium>();
    ASSERT_TRUE(browser_->started());
    browser_->set_size(1400, 1000);
  }
  // No complaint, and nothing was asked for but the file.
  void TearDown() override {
    if (!browser_) return;
    for (const std::string& complaint : browser_->take_complaints())
      if (complaint.find("willReadFrequently") == complaint.npos)  // Of tests that look at pixels.
        ADD_FAILURE() << complaint;
    for (const std::string& address : browser_->take_requests())
      EXPECT_TRUE(address.starts_with("file://") || address == "about:blank") << address;
  }
  void open(const std::string& arguments) {
    const std::string file = (folder_.path() / "report.html").string();
    const Outcome outcome = run_orrery(arguments + " --html '" + file + "' --force");
    ASSERT_EQ(outcome.code, 0) << outcome.out;
    size_ = std::filesystem::file_size(file);
    browser_->open("file://" + file);
    browser_->wait_for("window.report?.ready");
  }
  Json evaluate(const std::string& expression) { return browser_->evaluate(expression); }
  std::string text(const std::string& selector) {
    return evaluate("document.querySelector('" + selector + "')?.innerText ?? ''");
  }

  TemporaryFolder folder_;
  std::unique_ptr<Chromium> browser_;
  std::uintmax_t size_ = 0;
};

constexpr const char* estimate =
    "estimate --model gpt3-175b --system dgx-a100-80gb --gpus 512 --tp 8 --pp 8 --gbs 768 "
    "--recompute full --tokens 300B";

TEST_F(ReportPage, DrawsWhatTheExplorerDraws) {
  open(estimate);
  EXPECT_LT(size_, 3'000'000u);
  EXPECT_EQ(evaluate("document.querySelectorAll('#stages .bar').length"), 8);
  EXPECT_EQ(evaluate("document.querySelectorAll('#memory .bars .bar').length"), 9);
  EXPECT_EQ(evaluate("document.querySelectorAll('#critical .strip').length"), 1);
  EXPECT_NE(text("#command").find("orrery estimate --model gpt3-175b"), std::string::npos);
  // The parts of a stage are its step.
  EXPECT_NEAR(evaluate("[...document.querySelectorAll('#stages .strip')[0].children]"
                       ".reduce((sum, piece) => sum + Number(piece.style.flexGrow), 0)")
                  .get<double>(),
              1.0, 0.01);
  EXPECT_EQ(evaluate("report.result.inputs.models['gpt3-175b'].layers"), 96);
  evaluate("document.getElementById('inputs').open = true; undefined");
  browser_->wait_for("document.querySelector('#inputs pre').textContent.includes('gpt3-175b')");
}

TEST_F(ReportPage, ItsTimelineZoomsToAKernel) {
  open(estimate);
  EXPECT_GT(evaluate("report.timeline.timeline.header.slices").get<int>(), 1000);
  const std::string whole = text("#timeline-scale");
  evaluate("document.getElementById('timeline').focus(); undefined");
  browser_->press("]");
  browser_->wait_for("document.querySelector('#timeline-details strong')");
  browser_->press("Enter");
  browser_->wait_for("document.getElementById('timeline-scale').innerText !== '" + whole + "'");
  const std::string slice = text("#timeline-details strong");
  browser_->press("]");
  browser_->wait_for("document.querySelector('#timeline-details strong').innerText !== '" + slice +
                     "'");
  evaluate("document.getElementById('zoom-fit').click(); undefined");
  browser_->wait_for("document.getElementById('timeline-scale').innerText === '" + whole + "'");
}

// Nothing gets lost however narrow it is: the ink of a lane is the time that its rank is busy. With
// 768 micro-batches each pass is a fraction of a pixel.
TEST_F(ReportPage, InkIsTime) {
  open("estimate --model llama3-8b --system dgx-h100 --gpus 8 --tp 8 --gbs 768 --mbs 1");
  const double share = evaluate(R"((() => {
    const t = report.timeline.timeline, track = t.header.tracks[0];
    let busy = 0;
    for (let i = track.first; i < track.first + track.count; ++i)
      if (t.depth[i] === 0) busy += t.finish[i] - t.start[i];
    return busy / t.header.step_ns; })())");
  ASSERT_GT(share, 0.5);
  const double ink = evaluate(R"((() => {
    const canvas = document.getElementById('timeline');
    const row = canvas.getContext('2d').getImageData(0, 23, canvas.width, 1).data;
    let inked = 0;
    for (let x = 0; x < canvas.width; ++x)
      if (row[4 * x] + row[4 * x + 1] + row[4 * x + 2] < 3 * 250) ++inked;
    return inked / canvas.width; })())");
  EXPECT_NEAR(ink, share, 0.05);
}

TEST_F(ReportPage, IsReadableOnNarrowScreensInTheDarkAndOnPaper) {
  open(estimate);
  browser_->set_size(420, 900);
  browser_->set_dark(true);
  EXPECT_LE(evaluate("document.documentElement.scrollWidth").get<int>(), 420);
  EXPECT_EQ(evaluate("getComputedStyle(document.documentElement).backgroundColor"),
            "rgb(23, 22, 20)");
  // The canvas as well, which style sheets do not reach.
  const auto ground = [&] {
    return evaluate(
               "(c => c.getContext('2d').getImageData(c.width - 1, 2, 1, 1).data[0])"
               "(document.getElementById('timeline'))")
        .get<int>();
  };
  browser_->wait_for("document.getElementById('timeline').clientWidth < 420");
  evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))");
  EXPECT_LT(ground(), 60);
  evaluate("dispatchEvent(new Event('beforeprint')); undefined");
  EXPECT_GT(ground(), 240);
  EXPECT_GT(evaluate("document.getElementById('timeline-frame').clientHeight").get<int>(), 320);
  evaluate("dispatchEvent(new Event('afterprint')); undefined");
  EXPECT_LT(ground(), 60);
}

TEST_F(ReportPage, HostileNamesAreInert) {
  const std::string name =
      "<img src=x onerror=alert(1)></script><script>alert(2)</script>\"'&\u202Eevil";
  std::ifstream known{ORRERY_TEST_SOURCE "/workloads/models/llama3-8b.json"};
  Json model = Json::parse(known);
  model["name"] = name;
  const std::string file = (folder_.path() / "a\"<b>&.json").string();
  std::ofstream{file} << model;
  const std::string shared = " --model '" + file + "' --system dgx-h100 ";
  for (const std::string& command :
       {"compare" + shared + "--gpus 8 --gbs 64 '--tp 2' '--tp 4'",
        "search" + shared + "--gpus 8 --gbs 64 --fix tp=2,4 --fix mbs=1",
        "sweep run" + shared + "--gpus 8 --sweep 'tp=2,4 gbs=64' --output " +
            (folder_.path() / "sweep").string(),
        "buy" + shared + "--tokens 1T --gpus 16 --fix tp=2 --fix mbs=1",
        "run" + shared + "--gpus 8 --tp 2 --gbs 64 --tokens 1B --replicates 50",
        "serve --search --engine vllm --isl 512 --osl 64 --concurrency 8 --gpus 2" + shared,
        "estimate" + shared + "--gpus 8 --tp 2 --gbs 64"}) {
    SCOPED_TRACE(command);
    open(command);
    EXPECT_NE(text("#command").find("a\"<b>&.json"), std::string::npos) << text("#command");
    EXPECT_EQ(evaluate("document.querySelectorAll('img').length"), 0);
    EXPECT_EQ(evaluate("document.querySelectorAll('script:not([type])').length"), 1);
  }
  EXPECT_EQ(evaluate("report.result.model"), name);
  EXPECT_NE(text("h1").find("\\u202E"), std::string::npos) << text("h1");
  EXPECT_NE(text("h1").find("</script>"), std::string::npos) << text("h1");
}

TEST_F(ReportPage, OfASearchDrawsItsPlans) {
  const std::string search =
      "search --model llama3-8b --system dgx-h100 --gpus 16 --gbs 64 --fix tp=2,4 --tokens 1T";
  open(search);
  EXPECT_LT(size_, 3'000'000u);
  EXPECT_EQ(evaluate("report.result"), Json::parse(run_orrery(search + " --json").out));
  const std::string printed = run_orrery(search).out;
  const std::size_t plans = evaluate("report.result.plans.length");
  EXPECT_EQ(evaluate("document.querySelector('main > table').rows.length"), plans + 1);
  // Each plan is a mark of both drawings, and the table and its notes say what the command prints.
  for (const char* chart : {"memory", "cost"})
    EXPECT_EQ(evaluate("document.querySelectorAll('#search-" + std::string{chart} +
                       "-chart .mark').length"),
              plans)
        << chart;
  for (const std::string note : evaluate("[...document.querySelectorAll('p.note')]"
                                         ".map(p => p.textContent)"))
    EXPECT_NE(printed.find(note), std::string::npos) << note;
  EXPECT_NE(text("#command").find("orrery search --model llama3-8b"), std::string::npos);
  browser_->set_size(420, 900);
  browser_->wait_for("document.querySelector('.chart').clientWidth < 420");
  EXPECT_LE(evaluate("document.documentElement.scrollWidth").get<int>(), 420);
}

// The other drawings of the explorer, of the same data and on the timeline's axis.
TEST_F(ReportPage, HasTheDrawingsThatTheExplorerOpens) {
  open(
      "estimate --model mixtral-8x7b --system dgx-h100 --gpus 64 --tp 2 --pp 2 --ep 8 --gbs 128 "
      "--seq 4096 --routing zipf-1");
  for (const char* view : {"memory", "cluster", "roofline", "experts"})
    EXPECT_TRUE(
        evaluate("document.getElementById('view-" + std::string{view} + "').open").get<bool>())
        << view;
  EXPECT_EQ(evaluate("Math.max(...report.memory.shown.ranks.map(r => r.counted_bytes))"),
            evaluate("report.result.memory.peak_bytes"));
  EXPECT_GE(evaluate("document.querySelectorAll('#cluster-kinds .domain').length").get<int>(), 1);
  EXPECT_GE(evaluate("document.querySelectorAll('#roofline-drawing .op').length").get<int>(), 3);
  EXPECT_FALSE(evaluate("document.getElementById('experts-map').hidden").get<bool>());
  // Zoomed to its second half, the busiest link has what it has in the slices of that half.
  const auto shown_load = [&] {
    return evaluate(
        "(c => { const l = [...c.shown.fabric, ...c.shown.kinds.flatMap(k => k.links)]"
        ".sort((a, b) => b.busy_fraction - a.busy_fraction)[0];"
        "return [c.load(l), l.bytes, l.capacity_bytes_per_s, Object.values(l.over_time)"
        ".reduce((sum, list) => sum + list.slice(80).reduce((a, b) => a + b), 0)]; })"
        "(report.cluster)");
  };
  const double step_s = evaluate("report.cluster.shown.step_s");
  const Json whole = shown_load();
  EXPECT_NEAR(whole[0].get<double>(), whole[1].get<double>() / whole[2].get<double>() / step_s,
              1e-6);
  evaluate("(s => report.timeline.look(s / 2, s))(report.cluster.shown.step_ns); undefined");
  browser_->wait_for(
      "document.getElementById('cluster-when').innerText.startsWith('what the timeline shows')");
  const Json half = shown_load();
  EXPECT_NEAR(half[0].get<double>(), half[3].get<double>() / half[2].get<double>() / (step_s / 2.0),
              1e-4 * half[0].get<double>());
  evaluate("document.getElementById('cluster-follow').click(); undefined");
  EXPECT_EQ(text("#cluster-when"), "the whole step");
  // On paper all ranks are there.
  evaluate("dispatchEvent(new Event('beforeprint')); undefined");
  EXPECT_GE(evaluate("document.getElementById('memory-frame').clientHeight").get<int>(), 100);
  evaluate("dispatchEvent(new Event('afterprint')); undefined");
}

// The report shows layers by kind as the explorer does, and without scripts as a table.
TEST_F(ReportPage, TellsLayersOfSeveralKindsApart) {
  open(estimate);
  EXPECT_EQ(evaluate("document.getElementById('kinds')"), nullptr);
  open(
      "estimate --model nemotron-3-nano-30b-a3b --system dgx-h200 --gpus 16 --pp 2 --ep 8 --gbs 32 "
      "--seq 4096");
  EXPECT_EQ(evaluate("[...document.querySelectorAll('#kinds thead th')].slice(1)"
                     ".map(cell => cell.innerText)"),
            evaluate("report.result.layer_kinds.map(of => of.kind)"));
  EXPECT_NE(text("#kinds").find("state space (Mamba-2)"), std::string::npos);
  EXPECT_EQ(evaluate("[...document.querySelectorAll('#kinds .order span')]"
                     ".reduce((sum, run) => sum + Number(run.style.flexGrow), 0)"),
            52);
  EXPECT_EQ(evaluate("document.querySelectorAll('#memory table.kinds tbody tr').length"), 3);
  EXPECT_EQ(evaluate("document.querySelectorAll('#roofline-kinds input').length"), 4);
  browser_->set_size(420, 900);
  EXPECT_LE(evaluate("document.documentElement.scrollWidth").get<int>(), 420);
  std::ifstream file{folder_.path() / "report.html"};
  const std::string html{std::istreambuf_iterator<char>{file}, {}};
  for (const char* cell : {"<td class=\"left\">mamba2</td>", "<td>2.13 MB</td>"})
    EXPECT_NE(html.find(cell), html.npos) << cell;
}

// All that is printed stands in the page, which is readable on a telephone, in the dark, and holds
// what --json prints.
TEST_F(ReportPage, OfOtherCommandsDrawWhatTheySay) {
  const std::string folder = (folder_.path() / "sweep").string();
  const std::string shared = "--model llama3-8b --system dgx-h100 ";
  struct Case {
    std::string command, marks, json;
    int count;
  };
  const std::vector<Case> cases{
      {"compare " + shared + "--gpus 16 --gbs 64 '--tp 2' '--tp 4' '--tp 8 --recompute full'",
       "#compared .strip, #compared-chart .mark", "--json", 6},
      {"compare " + shared + "--gpus 16 --gbs 64 --tokens 1T --replicates 50 '--tp 2' '--tp 4'",
       "#compared-runs-chart .mark", "--json", 2},
      {"buy --model llama3-8b --tokens 1T --system dgx-h100,dgx-a100-80gb --gpus 16,32 "
       "--fix cp=1 --fix mbs=1",
       "#purchase-cost-chart .mark, #purchase-days-chart .mark", "--json", 8},
      {"sweep run " + shared + "--gpus 16 --sweep 'tp=2,4,8 gbs=64,128' --tokens 1T --output " +
           folder,
       ".grid-map tbody td", "", 6},
      {"sweep merge " + folder, "#sweep-drawings .chart .mark", "", 12},
      {"serve --search --model llama3.1-8b --system dgx-h100 --gpus 2 --engine vllm --isl 512 "
       "--osl 64 --concurrency 1,8",
       "#deployments-chart .mark.first", "--json", 1},
      {"run " + shared + "--gpus 512 --tp 2 --gbs 512 --tokens 1T --replicates 50",
       ".histogram span", "--json", 40}};
  for (const Case& of : cases) {
    SCOPED_TRACE(of.command);
    browser_->set_size(1400, 1000);
    open(of.command);
    EXPECT_LT(size_, 3'000'000u);
    EXPECT_EQ(evaluate("document.querySelectorAll('" + of.marks + "').length"), of.count);
    EXPECT_NE(text("#command").find(of.command.substr(0, of.command.find(' '))), std::string::npos);
    if (!of.json.empty()) {
      EXPECT_EQ(evaluate("report.result"), Json::parse(run_orrery(of.command + " --json").out));
    }
    browser_->set_size(420, 900);
    browser_->set_dark(true);
    EXPECT_LE(evaluate("document.documentElement.scrollWidth").get<int>(), 420);
    EXPECT_EQ(evaluate("getComputedStyle(document.documentElement).backgroundColor"),
              "rgb(23, 22, 20)");
    browser_->set_dark(false);
  }
}

TEST_F(ReportPage, OfASweepShowsWhatIsChosen) {
  const std::string folder = (folder_.path() / "sweep").string();
  open(
      "sweep run --model llama3-8b --system dgx-h100 --gpus 16 --sweep 'tp=2,4 gbs=64,128 mbs=1,2'"
      " --output " +
      folder);
  // What it was made of is in it, also when the rows are merged later.
  const std::string inputs = "JSON.parse(document.getElementById('inputs-data').textContent)";
  const Json made_of = evaluate(inputs);
  EXPECT_EQ(made_of["sweep"]["axes"]["tp"], Json::parse("[2, 4]"));
  EXPECT_EQ(made_of["models"]["llama3-8b"]["layers"], 32);
  EXPECT_TRUE(made_of["systems"].contains("dgx-h100"));
  open("sweep merge " + folder);
  EXPECT_EQ(evaluate(inputs), made_of);
  const std::string speed = text(".grid-map");
  evaluate(
      "(s => { s.selectedIndex = 1; s.dispatchEvent(new Event('change')) })"
      "(document.getElementById('sweep-figure')); undefined");
  EXPECT_NE(text(".grid-map"), speed);
  EXPECT_NE(text(".grid-map caption").find("step time"), std::string::npos);
  // Of the steps in a cell the shortest.
  const double least = evaluate(
      "Math.min(...report.result.rows.filter(r => r.at[0] === 0 && "
      "r.at[1] === 0).map(r => r.step_time_s))");
  EXPECT_NEAR(std::stod(text(".grid-map tbody td")), least, 0.006 * least);
  evaluate(
      "(s => { s.selectedIndex = 2; s.dispatchEvent(new Event('change')) })"
      "(document.getElementById('sweep-x')); undefined");
  EXPECT_EQ(evaluate("document.querySelectorAll('.grid-map thead th').length"), 3);
}

// The largest that there is: kernels are left out before the file is too large to be sent.
TEST_F(ReportPage, StaysSmall) {
  open(
      "estimate --model deepseek-v3 --system hgx-h800 --gpus 2048 --pp 16 --ep 64 --gbs 15360 "
      "--recompute full");
  EXPECT_LT(size_, 3'000'000u);
  EXPECT_GT(evaluate("report.timeline.timeline.header.slices").get<int>(), 10'000);
}

}  // namespace
}  // namespace orrery::report_page_test
