// The drawings that are asked for when they are opened: what they say is what the answer says.

#include <cmath>

#include "tests/explore/view_agreement.hpp"
#include "tests/support/explorer_page.hpp"
#include "tests/support/program.hpp"

namespace orrery::views_test {
namespace {

using Json = nlohmann::json;

// One of each kind of plan: every schedule, with and without recomputation, experts, and passes
// that run together.
const std::vector<Json>& states() {
  static const std::vector<Json> list = [] {
    const Json gpt{{"model", "gpt3-175b"},
                   {"system", "dgx-a100-80gb"},
                   {"gpus", "512"},
                   {"tp", "8"},
                   {"pp", "8"},
                   {"gbs", "256"}};
    const Json mixture{{"model", "mixtral-8x7b"},
                       {"system", "dgx-h100"},
                       {"gpus", "64"},
                       {"tp", "2"},
                       {"pp", "2"},
                       {"ep", "8"},
                       {"gbs", "128"},
                       {"seq", "4096"}};
    std::vector<Json> all{gpt, mixture};
    const auto with = [&](Json state, const Json& changes) {
      state.update(changes);
      all.push_back(state);
    };
    with(gpt, {{"recompute", "full"}});
    with(gpt, {{"recompute", "selective"}, {"mbs", "2"}});
    with(gpt, {{"vpp", "3"}, {"recompute", "full"}});
    with(gpt, {{"schedule", "gpipe"}, {"recompute", "full"}});
    with(gpt, {{"schedule", "zb-h1"}, {"software", "zerobubble"}, {"zero", "1"}});
    with(gpt, {{"pp", "1"}, {"zero", "3"}, {"recompute", "full"}});
    with(mixture, {{"routing", "zipf-1"}});
    with(mixture, {{"vpp", "4"}, {"ep_overlap", "true"}});
    all.push_back({{"model", "llama3-8b"},
                   {"system", "l40s-pcie"},
                   {"gpus", "16"},
                   {"tp", "2"},
                   {"pp", "4"},
                   {"gbs", "32"},
                   {"recompute", "full"}});
    return all;
  }();
  return list;
}

class ViewReplies : public testing::Test {
 protected:
  Json ask(const std::string& kind, const Json& state) {
    const HttpReply reply = explorer_.post(kind, state.dump());
    EXPECT_EQ(reply.status, 200) << kind << state << reply.body;
    return reply.status == 200 ? Json::parse(reply.body) : Json{};
  }

  Explorer explorer_;
};

TEST_F(ViewReplies, MemoryPeaksAtTheAnswers) {
  for (const Json& state : states()) {
    SCOPED_TRACE(state.dump());
    expect_memory_agrees(ask("memory", state), ask("result", state));
  }
}

TEST_F(ViewReplies, ClusterHasTheLinksOfTheAnswer) {
  for (const Json& state : states()) {
    SCOPED_TRACE(state.dump());
    expect_cluster_agrees(ask("cluster", state), ask("result", state));
  }
}

// The same bytes that `orrery kernel step --json` prints for these words.
TEST_F(ViewReplies, RooflineIsTheCommands) {
  for (const Json& state : states()) {
    SCOPED_TRACE(state.dump());
    std::string words = "kernel step --json";
    for (const auto& [key, word] : state.items())
      words += " --" + key + " " + word.get<std::string>();
    const Outcome printed = run_orrery(words);
    EXPECT_EQ(printed.code, 0) << printed.out;
    EXPECT_EQ(explorer_.post("roofline", state.dump()).body, printed.out);
  }
}

// The map's greatest cells are those that the routing report names, and means are means.
TEST_F(ViewReplies, ExpertsAreTheRoutingReports) {
  int uneven = 0;
  for (Json state : states()) {
    const bool has_experts = state["model"] == "mixtral-8x7b";
    for (const char* routing : {"uniform", "zipf-1", "zipf-1-redundant", "aux-loss"}) {
      if (has_experts) state["routing"] = routing;
      if (state.contains("ep_overlap") && routing != std::string{"uniform"}) continue;
      SCOPED_TRACE(state.dump());
      const Json experts = ask("experts", state), result = ask("result", state);
      ASSERT_TRUE(experts.is_object() && result.is_object());
      EXPECT_EQ(experts["experts"], has_experts ? 8 : 0);
      if (!has_experts) break;
      EXPECT_EQ(experts["layers"].size(), 32u);
      EXPECT_EQ(experts["even"], std::string{"uniform"} == routing);
      if (experts["even"]) continue;
      ++uneven;
      const Json& report = result["routing"];
      for (const Json& hot : report["hottest_experts"]) {
        const Json& layer = experts["expert_over_mean"][hot["layer"].get<std::size_t>()];
        EXPECT_NEAR(layer[hot["expert"].get<std::size_t>()].get<double>(),
                    hot["over_mean"].get<double>(), 1e-4);
        EXPECT_NEAR(*std::max_element(layer.begin(), layer.end()), hot["over_mean"].get<double>(),
                    1e-4);
      }
      double worst = 0.0;
      for (std::size_t layer = 0; layer < 32; ++layer) {
        double shares = 0.0, rows = 0.0;
        for (const double share : experts["expert_over_mean"][layer]) shares += share;
        for (const double row : experts["rank_over_mean"][layer]) rows += row;
        for (const double row : experts["rank_most_over_mean"][layer]) worst = std::max(worst, row);
        EXPECT_NEAR(shares, 8.0, 1e-3);
        EXPECT_NEAR(rows, experts["ranks"].get<double>(), 1e-3);
      }
      EXPECT_NEAR(worst, report.at("rows_worst_over_mean").get<double>(), 1e-4) << report;
    }
  }
  EXPECT_GE(uneven, 6);
}

class Views : public ExplorerPage {
 protected:
  void open_view(const std::string& name) {
    evaluate("document.getElementById('view-" + name + "').open = true; undefined");
    browser_->wait_for("explorer.views.took('" + name +
                       "').length > 0 && "
                       "!document.getElementById('view-" +
                       name + "').hasAttribute('aria-busy')");
  }
};

TEST_F(Views, AreNotRequestedWhileTheyAreClosed) {
  settle(slide("mbs", 1));
  for (const std::string& address : browser_->take_requests())
    EXPECT_EQ(address.find("api/memory"), address.npos) << address;
  open_view("memory");
  settle(slide("mbs", -1));
  browser_->wait_for("explorer.views.took('memory').length == 2");
  // Once for each answer.
  evaluate("document.getElementById('view-memory').open = false; undefined");
  open_view("memory");
  int asked = 0;
  for (const std::string& address : browser_->take_requests())
    asked += address.find("api/memory") != address.npos ? 1 : 0;
  EXPECT_EQ(asked, 2);
}

TEST_F(Views, AreInTheLink) {
  open_view("memory");
  open_view("roofline");
  browser_->wait_for("location.hash.endsWith('&views=memory,roofline')");
  click("pin");
  const std::string link = evaluate("location.href");
  load(link);
  browser_->wait_for(
      "explorer.views.took('memory').length > 0 && "
      "explorer.views.took('roofline').length > 0");
  EXPECT_FALSE(evaluate("document.getElementById('view-cluster').open").get<bool>());
  EXPECT_EQ(evaluate("location.href"), link);
  // No option of the command.
  EXPECT_EQ(text("#command").find("views"), std::string::npos);
}

TEST_F(Views, MemoryIsShownOnTheTimelinesAxis) {
  open_view("memory");
  const double peak = evaluate("explorer.answer.result.memory.stages[0].peak_bytes");
  char shown[32];
  std::snprintf(shown, sizeof shown, "%.1f GB", peak * 1e-9);
  EXPECT_EQ(text("#memory-details strong"), shown);
  EXPECT_NE(text("#memory-details").find("8 micro-batches, 0, 1, 2, 3, 4, 5, 6, 7."),
            std::string::npos);
  // In the middle of the second forward pass of stage 0 there are one and a half.
  evaluate(
      "{ const r = explorer.memory.shown.ranks[0].held;"
      "explorer.memory.look(0, (r[7 + 2] + r[7 + 3]) / 2) }");
  EXPECT_NE(text("#memory-details").find("2 micro-batches, 0, 1 (50 %)."), std::string::npos);
  // With the keyboard: to the peak, to the next stage.
  evaluate("document.getElementById('memory-canvas').focus()");
  browser_->press("p");
  EXPECT_EQ(text("#memory-details strong"), shown);
  browser_->press("ArrowDown");
  EXPECT_NE(text("#memory-details").find("stage 1"), std::string::npos);
  // Zooming here zooms the timeline, and the plot follows.
  const double whole = evaluate("explorer.timeline.looks[1] - explorer.timeline.looks[0]");
  browser_->press("+");
  EXPECT_LT(evaluate("explorer.timeline.looks[1] - explorer.timeline.looks[0]").get<double>(),
            whole);
  EXPECT_EQ(evaluate("document.querySelectorAll('#memory-peaks tbody tr').length"), 8);
  // The same width: what is above each other happens at one time.
  EXPECT_EQ(evaluate("document.getElementById('memory-canvas').getBoundingClientRect().left"),
            evaluate("document.getElementById('timeline').getBoundingClientRect().left"));
  EXPECT_EQ(evaluate("document.getElementById('memory-canvas').clientWidth"),
            evaluate("document.getElementById('timeline').clientWidth"));
}

TEST_F(Views, TheClusterIsFoldedAndItsLinksAreShown) {
  open_view("cluster");
  const auto percentage = [&](const std::string& selector) {
    const std::string shown = text(selector);
    return shown == "< 0.1 %" ? 0.05 : std::stod(shown);
  };
  // Eight stages, each on 16 nodes of 8 GPUs.
  EXPECT_EQ(evaluate("document.querySelectorAll('#cluster-kinds .domain').length"), 8);
  EXPECT_NE(text("#domain-0").find("× 16 nodes of 8 GPUs"), std::string::npos);
  // A button shows the link table's figure.
  const Json links = evaluate("explorer.answer.result.links");
  for (const Json& link : links) {
    const std::string of_class =
        "[id^=bundle-][id*=\"-" + link["class"].get<std::string>() + "-\"] b";
    const Json loads = evaluate("[...document.querySelectorAll('" + of_class +
                                "')].map(b => parseFloat(b.innerText.replace('< 0.1', '0.05')))");
    double most = 0.0;
    for (const double load : loads) most = std::max(most, load);
    EXPECT_NEAR(most, 100.0 * link["busy_fraction"].get<double>(), 0.0501) << link;
  }
  // Of each user apart, loads add up.
  const double whole = percentage("#bundle-kind0-nic-up b");
  double sum = 0.0;
  for (const char* user : {"pipeline", "data"}) {
    click(std::string{"cluster-user-"} + user);
    sum += percentage("#bundle-kind0-nic-up b");
  }
  EXPECT_NEAR(sum, whole, 0.151);
  click("cluster-user-all");
  EXPECT_EQ(evaluate("document.querySelectorAll('#domain-0 .gpu').length"), 8);
  // Along the step, with the keyboard: at the beginning nothing is sent over NVLink but by stage 0.
  click("bundle-kind3-nvlink-up");
  EXPECT_NE(text("#cluster-curve").find("tensor"), std::string::npos);
  evaluate("document.getElementById('cluster-time').focus()");
  browser_->press("ArrowRight");
  EXPECT_NE(text("#cluster-when"), "the whole step");
  EXPECT_EQ(text("#bundle-kind3-nvlink-up b"), "0.0 %");
  click("cluster-busiest");
  EXPECT_GT(
      percentage("#bundle-kind3-nvlink-up b"),
      100.0 * evaluate("explorer.cluster.shown.kinds[3].links[0].busy_fraction").get<double>());
  click("cluster-whole");
  EXPECT_EQ(text("#cluster-when"), "the whole step");
}

// The curves of the links follow the timeline, in finer slices the closer one looks.
TEST_F(Views, LinksFollowTheTimeline) {
  open_view("cluster");
  click("bundle-kind3-nvlink-up");
  const double step = evaluate("explorer.timeline.looks[1]");
  const auto look = [&](double from, double to) {
    const int before = evaluate("explorer.cluster.refined");
    evaluate("explorer.timeline.look(" + std::to_string(from) + ", " + std::to_string(to) + ")");
    browser_->wait_for("explorer.cluster.refined > " + std::to_string(before));
  };
  const auto sent = [&] { return evaluate("explorer.cluster.sentInSight()").get<double>(); };
  const double all = sent();
  // Tenths of the step add up to it.
  double sum = 0.0;
  for (int i = 0; i < 10; ++i) {
    look(0.1 * i * step, 0.1 * (i + 1) * step);
    sum += sent();
  }
  EXPECT_NEAR(sum, all, 1e-3 * all);
  EXPECT_TRUE(text("#cluster-when").starts_with("what the timeline shows"))
      << text("#cluster-when");
  // In a thousandth of the step a collective has edges: at times the link is full or idle.
  look(0.5 * step, 0.501 * step);
  const Json loads = evaluate("explorer.cluster.loadsInSight()");
  double least = 1.0, most = 0.0;
  for (const double load : loads) {
    least = std::min(least, load);
    most = std::max(most, load);
  }
  EXPECT_LT(least, 0.01);
  EXPECT_GT(most, 0.3);
  click("cluster-follow");
  EXPECT_EQ(text("#cluster-when"), "the whole step");
  EXPECT_NEAR(sent(), all, 1e-9 * all);
}

// A rack has 72 GPUs and a fabric hundreds of switches: eight of each are drawn.
TEST_F(Views, IdenticalPartsAreNumbers) {
  begin({"--model", "llama3-70b", "--system", "gb200-nvl72", "--gpus", "288", "--tp", "4", "--pp",
         "2", "--gbs", "576"});
  open_view("cluster");
  EXPECT_LE(evaluate("Math.max(...[...document.querySelectorAll('.domain svg')]"
                     ".map(s => s.querySelectorAll('.gpu').length))")
                .get<int>(),
            8);
  EXPECT_NE(text("#cluster-kinds").find("72 GPUs"), std::string::npos);
  begin({"--model", "llama3-8b", "--system", "dgx-h100-superpod", "--gpus", "1024", "--tp", "2",
         "--gbs", "1024"});
  open_view("cluster");
  EXPECT_NE(text("#cluster-fabric").find("leaves"), std::string::npos);
  EXPECT_LE(evaluate("document.querySelectorAll('#cluster-fabric rect').length").get<int>(), 24);
}

TEST_F(Views, OperationsLieBelowTheirRoofs) {
  open_view("roofline");
  // A mark for each operation that computes and reads memory.
  EXPECT_EQ(evaluate("document.querySelectorAll('#roofline-drawing .op').length"),
            evaluate("explorer.roofline.shown.operations"
                     ".filter(o => o.flop_per_s > 0 && o.ops_per_byte > 0).length"));
  EXPECT_GE(evaluate("document.querySelectorAll('#roofline-drawing .roof').length").get<int>(), 2);
  // No mark is above its roofline as plotted, slope and highest flat line, by the pixels.
  EXPECT_EQ(evaluate(R"js((() => {
      const lines = [...document.querySelectorAll('#roofline-drawing .roof')]
        .map(l => ['x1', 'y1', 'x2', 'y2'].map(k => Number(l.getAttribute(k))));
      const [slope, ...flats] = lines, highest = Math.min(...flats.map(l => l[1]));
      const middle = (e) => (b => [b.x + b.width / 2, b.y + b.height / 2])(e.getBBox());
      const marks = [...document.querySelectorAll('#roofline-drawing .op')];
      return marks.map(middle).filter(([x, y]) => {
        const [x1, y1, x2, y2] = slope;
        const roof = x >= x2 ? highest : y1 + (y2 - y1) * (x - x1) / (x2 - x1);
        return y < roof - 4;
      }).length
    })())js"),
            0);
  // With the keyboard through the list, and with the mouse to a mark.
  const Json operations = evaluate("explorer.roofline.shown.operations.map(o => o.operation)");
  const auto words = [](std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
  };
  EXPECT_EQ(text("#roofline-details strong"), words(operations[0]));
  evaluate("document.getElementById('roofline').focus()");
  browser_->press("ArrowDown");
  EXPECT_EQ(text("#roofline-details strong"), words(operations[1]));
  evaluate(
      "document.querySelector('.op[data-op=\"0\"]')"
      ".dispatchEvent(new PointerEvent('pointerenter'))");
  EXPECT_EQ(text("#roofline-details strong"), words(operations[0]));
}

// The model repeats three layers with gated delta nets and one with attention.
TEST_F(Views, LayersOfSeveralKindsAreToldApart) {
  EXPECT_TRUE(evaluate("document.getElementById('kinds-section').hidden").get<bool>());
  EXPECT_EQ(evaluate("document.querySelectorAll('table.kinds').length"), 0);
  open_view("roofline");
  EXPECT_TRUE(evaluate("document.getElementById('roofline-of').hidden").get<bool>());

  begin({"--model", "qwen3-next-80b-a3b", "--system", "dgx-h200", "--gpus", "64", "--pp", "2",
         "--ep", "8", "--gbs", "64", "--seq", "4096"});
  EXPECT_FALSE(evaluate("document.getElementById('kinds-section').hidden").get<bool>());
  const auto row = [&](const std::string& begins) {
    return evaluate(
        "[...[...document.querySelectorAll('#kinds tr')].find(r => "
        "r.cells[0].innerText.startsWith('" +
        begins + "'))?.cells ?? []].slice(1).map(c => c.innerText)");
  };
  EXPECT_EQ(row("mixer"), (Json{"gated delta net", "attention"}));
  EXPECT_EQ(row("feed-forward"), (Json{"experts", "experts"}));
  EXPECT_EQ(row("layers"), (Json{"36", "12"}));
  EXPECT_TRUE(row("which")[0].get<std::string>().starts_with("0–2, 4–6, 8–10, "));
  EXPECT_TRUE(row("which")[1].get<std::string>().ends_with(", 39, 43, 47"));
  EXPECT_EQ(row("keys and values of a token"), (Json{"–", "2.05 kB"}));
  EXPECT_EQ(row("states of a sequence"), (Json{"2.15 MB", "–"}));
  for (const char* figure : {"forward", "backward", "share", "parameters", "activations"})
    for (const Json& cell : row(figure))
      EXPECT_GT(std::stod(cell.get<std::string>()), 0.0) << figure << cell;
  // The model's layers in order: each run has its width and the colour of its kind.
  EXPECT_EQ(evaluate("[...document.querySelectorAll('#kinds .order span')].slice(0, 3)"
                     ".map(s => s.style.flexGrow + ' ' + s.title)"),
            (Json{"3 layers 0–2: gdn+moe", "1 layer 3: full+moe", "3 layers 4–6: gdn+moe"}));
  EXPECT_EQ(evaluate("new Set([...document.querySelectorAll('#kinds .order span')]"
                     ".map(s => s.style.background)).size"),
            2);
  EXPECT_NE(text("#memory table.kinds").find("gdn+moe"), std::string::npos);
  open_view("memory");
  EXPECT_NE(text("#memory-details").find("18 gdn+moe"), std::string::npos);

  // Operations of one kind are those that its layers run, as often as they do.
  open_view("roofline");
  const std::string listed =
      "[...document.querySelectorAll('#roofline-list tbody tr')].map(r => [...r.cells].map(c => "
      "c.textContent))";
  const auto has = [&](const std::string& operation) {
    return evaluate(listed + ".some(c => c[0] === '" + operation + "')").get<bool>();
  };
  EXPECT_TRUE(has("scan bwd") && has("attention bwd") && has("experts fc1"));
  const auto choose = [&](const std::string& kind) {
    evaluate("[...document.querySelectorAll('#roofline-kinds label')].find(l => l.innerText === '" +
             kind + "').click(); undefined");
  };
  choose("full+moe");
  EXPECT_TRUE(has("attention bwd") && has("experts fc1"));
  EXPECT_FALSE(has("scan bwd"));
  const std::string count = "Number(" + listed + ".find(c => c[0] === 'experts fc1')[2])";
  const int of_attention = evaluate(count);
  choose("gdn+moe");
  EXPECT_TRUE(has("scan bwd"));
  EXPECT_FALSE(has("attention bwd"));
  EXPECT_EQ(evaluate(count), 3 * of_attention);
  EXPECT_NE(text("#roofline-details").find("in layers of gdn+moe"), std::string::npos);
  choose("all");
  EXPECT_TRUE(has("scan bwd") && has("attention bwd"));

  for (const int width : {420, 1000}) {
    browser_->set_size(width, 900);
    EXPECT_LE(evaluate("document.documentElement.scrollWidth").get<int>(), width);
  }
  for (const bool dark : {false, true}) {
    browser_->set_dark(dark);
    EXPECT_EQ(evaluate(poor_contrast), Json::array()) << (dark ? "dark" : "light");
  }
}

TEST_F(Views, ExpertsAreAMapWhereTheModelHasSome) {
  EXPECT_TRUE(evaluate("document.getElementById('view-experts').hidden").get<bool>());
  begin({"--model", "mixtral-8x7b", "--system", "dgx-h100", "--gpus", "64", "--tp", "2", "--pp",
         "2", "--ep", "8", "--gbs", "128", "--seq", "4096", "--recompute", "full"});
  EXPECT_FALSE(evaluate("document.getElementById('view-experts').hidden").get<bool>());
  open_view("experts");
  EXPECT_NE(text("#experts-told").find("is even"), std::string::npos);
  settle(
      "{ const s = document.getElementById('option'); s.value = '--routing zipf-1';"
      "document.getElementById('option-form').requestSubmit() }");
  browser_->wait_for("!document.getElementById('experts-map').hidden");
  // It begins with the fullest, which the answer names too.
  const Json hottest = evaluate("explorer.answer.result.routing.hottest_experts[0]");
  EXPECT_NE(
      text("#experts-details")
          .find("layer " + hottest["layer"].dump() + ", expert " + hottest["expert"].dump() + ":"),
      std::string::npos)
      << text("#experts-details") << hottest;
  evaluate("document.getElementById('experts-canvas').focus()");
  browser_->press("ArrowDown");
  EXPECT_EQ(text("#experts-details").find("layer " + hottest["layer"].dump() + ","),
            std::string::npos);
  browser_->press("m");
  EXPECT_NE(text("#experts-details").find("layer " + hottest["layer"].dump() + ","),
            std::string::npos);
  click("experts-of-most");
  EXPECT_NE(text("#experts-details").find("rows in its fullest micro-batch"), std::string::npos);
}

// Opened all at once: nothing is wider than the screen, and all can be read.
TEST_F(Views, FitNarrowScreensAndDarkOnes) {
  begin({"--model",     "mixtral-8x7b",
         "--system",    "hgx-h100-leaf-spine-2to1",
         "--gpus",      "64",
         "--tp",        "2",
         "--pp",        "2",
         "--ep",        "8",
         "--gbs",       "128",
         "--seq",       "4096",
         "--routing",   "zipf-1",
         "--recompute", "full"});
  for (const char* view : {"memory", "cluster", "roofline", "experts"}) open_view(view);
  for (const int width : {420, 1000}) {
    browser_->set_size(width, 900);
    browser_->wait_for(
        "document.getElementById('cluster-curve').querySelector('svg').width.baseVal"
        ".value <= " +
        std::to_string(width));
    EXPECT_LE(evaluate("document.documentElement.scrollWidth").get<int>(), width);
  }
  for (const bool dark : {false, true}) {
    browser_->set_dark(dark);
    EXPECT_EQ(evaluate(poor_contrast), Json::array()) << (dark ? "dark" : "light");
  }
}

}  // namespace
}  // namespace orrery::views_test
