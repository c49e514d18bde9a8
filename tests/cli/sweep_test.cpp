// A sweep from outside: whatever is done to it, its rows are the same bytes.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::sweep_test {
namespace {

namespace fs = std::filesystem;

// 24 combinations: 12 are simulated, the others do not divide.
const std::string axes =
    " --model llama3-8b --system dgx-h100 --gpus 16 --sweep 'tp=2,4,6 pp=1,2 gbs=16..128*2' ";

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

class SweepCommand : public testing::Test {
 protected:
  Outcome sweep(const std::string& words) const {
    return run_orrery("sweep " + words, folder_.path().string());
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  std::string merged(const std::string& out) const {
    EXPECT_EQ(sweep("merge " + out + " -o " + out + ".jsonl").code, 0);
    return contents(path(out + ".jsonl"));
  }

  TemporaryFolder folder_;
};

TEST_F(SweepCommand, PrintsTheSameWhateverTheWorkersAndShards) {
  const Outcome one = sweep("run --output one -j 1" + axes);
  EXPECT_EQ(one.code, 0);
  EXPECT_NE(one.out.find("24 points: 16 ok, 8 infeasible\n"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("orrery estimate --model llama3-8b"), std::string::npos);
  EXPECT_EQ(sweep("run --output three -j 3" + axes).out, one.out);
  EXPECT_EQ(sweep("run --output shards -j 2 --shards 5" + axes).out, one.out);
  EXPECT_EQ(contents(path("one/shard-00000-of-00001.jsonl")),
            contents(path("three/shard-00000-of-00001.jsonl")));
  EXPECT_EQ(merged("one"), merged("three"));
  EXPECT_EQ(merged("one"), merged("shards"));
  // Run again, it has nothing to do and says the same.
  EXPECT_EQ(sweep("run --output one").out, one.out);
  EXPECT_EQ(sweep("status one --missing").out, "");
  EXPECT_EQ(sweep("status one --missing").code, 0);
}

TEST_F(SweepCommand, TheBestRowIsWhatEstimateSays) {
  const std::string out = sweep("run --output one" + axes).out;
  const std::size_t at = out.find("orrery estimate ");
  ASSERT_NE(at, out.npos);
  const std::string words = out.substr(at + 7, out.find('\n', at) - at - 7);
  const std::string json = run_orrery(words + " --json").out;
  const std::size_t step = json.find("\"step_time_s\": ") + 15;
  const std::string time = json.substr(step, json.find(',', step) - step);
  EXPECT_NE(merged("one").find("\"step_time_s\":" + time + ","), std::string::npos) << time;
}

std::string figure(const std::string& json, const std::string& name) {
  const std::size_t at = json.find('"' + name + "\":");
  if (at == json.npos) return name + " is missing";
  const std::size_t begin = json.find_first_not_of(' ', at + name.size() + 3);
  return json.substr(begin, json.find_first_of(",}\n", begin) - begin);
}

// A run that was imported, with a model of its own, and the result of it: a sweep of one point is
// what estimate says, and what is swept replaces the plan's.
TEST_F(SweepCommand, OfAPlanFileIsWhatEstimateSays) {
  const std::string folder = folder_.path().string();
  const std::string script = ORRERY_TEST_SOURCE "/tests/unit/calibration/data/llama3_8b.sh";
  ASSERT_EQ(run_orrery("import megatron " + script + " --set GBS=128 -o run.json", folder).code, 0);
  const std::string where = " --system dgx-h100 --ignore-memory";
  const Outcome json = run_orrery("estimate --plan run.json --json" + where, folder);
  ASSERT_EQ(json.code, 0);
  std::ofstream{path("result.json")} << json.out;
  for (const std::string plan : {"run.json --system dgx-h100", "result.json"}) {
    const std::string out = plan.substr(0, plan.find('.'));
    ASSERT_EQ(sweep("run --output " + out + " --plan " + plan).code, 0) << plan;
    for (const char* name : {"step_time_s", "tokens_per_s", "mfu", "lower_bound_s"})
      EXPECT_EQ(figure(merged(out), name), figure(json.out, name)) << plan << " " << name;
  }
  const std::string described = contents(path("run/sweep.json"));
  for (const char* text :
       {"\"file\": \"run.json\"", "\"held\": {\n      \"model\": {", "\"simulator\": \"own\"",
        "\"axes\": {\n    \"system\": \"dgx-h100\"\n  }"})
    EXPECT_NE(described.find(text), described.npos) << text << "\n" << described;

  const std::string swept = "run --output swept --plan run.json --system dgx-h100 --gbs 256,512";
  const Outcome both = sweep(swept);
  ASSERT_EQ(both.code, 0);
  const std::string rows = merged("swept");
  const std::size_t second = rows.find('\n') + 1;
  for (const std::string gbs : {"256", "512"}) {
    const std::string row = gbs == "256" ? rows.substr(0, second) : rows.substr(second);
    const std::string alone =
        run_orrery("estimate --plan run.json --json --gbs " + gbs + where, folder).out;
    EXPECT_EQ(figure(row, "gbs"), gbs);
    EXPECT_EQ(figure(row, "step_time_s"), figure(alone, "step_time_s")) << gbs;
  }
  // The folder goes on with the plan as it was, by the simulator that began it.
  EXPECT_EQ(sweep("run --output swept").out, both.out);
  EXPECT_EQ(sweep("run --output swept --simulator simgrid").code, 2);
  std::ofstream{path("run.json"), std::ios::app} << "\n";
  EXPECT_EQ(sweep(swept).out, both.out);
  std::ofstream{path("run.json")} << R"({"model": "llama3-8b", "gpus": 16, "tp": 4})";
  EXPECT_EQ(sweep(swept).code, 2);
}

// One process a shard, each in turn; a second round finds nothing to do.
TEST_F(SweepCommand, ShardsAreIndependent) {
  sweep("run --output whole" + axes);
  EXPECT_EQ(sweep("run --output parts --shard 2/4" + axes).out,
            "shard 2 of 4 is complete: 6 points\n");
  const Outcome status = sweep("status parts");
  EXPECT_EQ(status.code, 5);
  EXPECT_EQ(status.out,
            "points  6 of 24, 25.0 %\nshards  1 of 4 complete\nmissing shards: 0-1,3\n");
  EXPECT_EQ(sweep("merge parts -o parts.csv").code, 5);
  // Slurm's array tasks find shards like this, also those of an array that was submitted again.
  for (const char* task : {"0", "1", "3"})
    EXPECT_EQ(run_shell("SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_ID=" + std::string{task} +
                            " '" ORRERY_TEST_BINARY_FOLDER "/orrery' sweep run --output parts",
                        folder_.path().string())
                  .code,
              0);
  EXPECT_EQ(sweep("status parts --missing").code, 0);
  EXPECT_EQ(merged("parts"), merged("whole"));
}

// Starts the program without a shell between, so that a signal meets it.
pid_t start(const fs::path& folder, const std::string& out) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  if (::chdir(folder.c_str()) != 0) ::_exit(1);
  std::ofstream null;
  ::freopen("/dev/null", "w", stdout);
  ::freopen("/dev/null", "w", stderr);
  ::execl(ORRERY_TEST_BINARY_FOLDER "/orrery", "orrery", "sweep", "run", "--output", out.c_str(),
          "-j", "2", nullptr);
  ::_exit(1);
}

std::uintmax_t size_of(const fs::path& file) {
  std::error_code ignored;
  const std::uintmax_t size = fs::file_size(file, ignored);
  return ignored ? 0 : size;
}

// Kills at a random moment: after up to some twenty more rows, or none, and up to 5 ms. True if it
// was too late.
bool kill_somewhere(pid_t process, const fs::path& partial, std::mt19937& random) {
  const auto size = [&] { return size_of(partial); };
  const std::uintmax_t enough = size() + random() % 20'000;
  int status = 0;
  for (int waited = 0; size() < enough && waited < 20'000; ++waited) {
    if (::waitpid(process, &status, WNOHANG) == process) return true;
    ::usleep(500);
  }
  ::usleep(static_cast<useconds_t>(random() % 5'000));
  ::kill(process, SIGKILL);
  ::waitpid(process, &status, 0);
  return WIFEXITED(status);
}

TEST_F(SweepCommand, SurvivesBeingKilled) {
  const std::string shard = "shard-00000-of-00001.jsonl";
  const std::string many =
      " --model llama3-8b --system dgx-h100 --gpus 16 --sweep "
      "'tp=2,4,6 pp=1,2 gbs=16..512+16' ";
  EXPECT_EQ(sweep("run --output whole" + many).code, 0);
  const std::string expected = contents(path("whole") / shard);

  std::mt19937 random{1};  // Moments are seeded; what they meet is the machine's.
  int kills = 0, sweeps = 0, meanwhile = 0;
  for (; kills < 50; ++sweeps) {
    ASSERT_LT(sweeps, 60);
    const std::string out = "killed" + std::to_string(sweeps);
    // A folder with its description alone is a sweep that was begun and has no row yet.
    fs::create_directory(path(out));
    fs::copy_file(path("whole/sweep.json"), path(out) / "sweep.json");
    int here = 0;
    while (!kill_somewhere(start(folder_.path(), out), path(out) / (shard + ".part"), random)) {
      ++kills;
      meanwhile += size_of(path(out) / (shard + ".part")) > 200;  // Some rows were there.
      ASSERT_LT(++here, 500) << "no progress";
    }
    if (!fs::exists(path(out) / shard)) sweep("run --output " + out);
    EXPECT_EQ(contents(path(out) / shard), expected) << "after " << here << " kills";
    EXPECT_FALSE(fs::exists(path(out) / (shard + ".part")));
  }
  EXPECT_GE(meanwhile, 25) << "of " << kills << " kills most came before the first row";
}

// The children of a process.
std::vector<pid_t> workers_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream file{"/proc/" + id + "/task/" + id + "/children"};
  return {std::istream_iterator<pid_t>{file}, {}};
}

// Signals to the whole group, which workers may get first, to the parent and to single workers: no
// row tells of them.
TEST_F(SweepCommand, NoRowReportsASignal) {
  const std::string shard = "shard-00000-of-00001.jsonl";
  const std::string many =
      " --model llama3-8b --system dgx-h100 --gpus 16 --sweep "
      "'tp=2,4,6 pp=1,2 gbs=16..512+16' ";
  EXPECT_EQ(sweep("run --output whole" + many).code, 0);
  const std::string expected = contents(path("whole") / shard);
  std::mt19937 random{2};
  for (int storm = 0; storm < 10; ++storm) {
    const std::string out = "storm" + std::to_string(storm);
    fs::create_directory(path(out));
    fs::copy_file(path("whole/sweep.json"), path(out) / "sweep.json");
    for (int wave = 0; wave < 3; ++wave) {
      const pid_t process = start(folder_.path(), out);
      ::usleep(static_cast<useconds_t>(30'000 + random() % 40'000));
      const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP};
      for (int hit = 0; hit < 3; ++hit) {
        const int signal = signals[random() % 4];
        const std::vector<pid_t> workers = workers_of(process);
        const bool at_all = random() % 2 == 0;
        if (!workers.empty()) ::kill(workers[random() % workers.size()], signal);
        if (at_all)
          for (const pid_t worker : workers) ::kill(worker, signal);
        if (at_all && hit == 2) ::kill(process, signal);
        ::usleep(static_cast<useconds_t>(random() % 2'000));
      }
      ::kill(process, SIGTERM);
      int status = 0;
      ::waitpid(process, &status, 0);
    }
    EXPECT_EQ(sweep("run --output " + out).code, 0);
    EXPECT_EQ(contents(path(out) / shard), expected) << storm;
  }
}

TEST_F(SweepCommand, SurvivesAFullDisk) {
  EXPECT_EQ(sweep("run --output whole" + axes).code, 0);
  // Files of at most 4 KiB hold about six rows.
  const std::string limited = "ulimit -f 8; '" ORRERY_TEST_BINARY_FOLDER "/orrery' sweep run";
  EXPECT_EQ(run_shell("(" + limited + " --output full" + axes + ")", folder_.path().string()).code,
            2);
  const std::string part = contents(path("full/shard-00000-of-00001.jsonl.part"));
  EXPECT_GT(std::count(part.begin(), part.end(), '\n'), 2);
  EXPECT_LT(part.size(), 4097u);
  EXPECT_EQ(part.back(), '\n');
  EXPECT_EQ(sweep("run --output full").code, 0);
  EXPECT_EQ(merged("full"), merged("whole"));
  // Merging meets it as well, and leaves nothing behind.
  for (const std::string name : {"m.sqlite", "m.csv", "m.jsonl"}) {
    const std::string merge =
        "(ulimit -f 8; '" ORRERY_TEST_BINARY_FOLDER "/orrery' sweep merge whole -o " + name + ")";
    EXPECT_EQ(run_shell(merge, folder_.path().string()).code, 2) << name;
    for (const auto& entry : fs::directory_iterator{folder_.path()})
      EXPECT_FALSE(entry.path().filename().string().starts_with("m.")) << entry.path();
  }
}

TEST_F(SweepCommand, ACutLastLineIsComputedAgain) {
  EXPECT_EQ(sweep("run --output whole" + axes).code, 0);
  const fs::path shard = path("whole/shard-00000-of-00001.jsonl");
  const std::string expected = contents(shard);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{40}, expected.size() / 2}) {
    fs::remove(shard);
    std::ofstream{shard.string() + ".part"} << expected.substr(0, expected.size() - cut);
    EXPECT_EQ(sweep("run --output whole").code, 0);
    EXPECT_EQ(contents(shard), expected);
  }
}

TEST_F(SweepCommand, APointThatTakesTooLongIsRecorded) {
  const Outcome swept = sweep("run --output slow --point-time-limit '1 ns' -j 1" + axes);
  EXPECT_EQ(swept.code, 5);
  EXPECT_NE(swept.out.find("failed"), std::string::npos) << swept.out;
  EXPECT_EQ(sweep("merge slow -o slow.jsonl").code, 5);
  EXPECT_NE(contents(path("slow.jsonl")).find("took longer than 1e-09 s"), std::string::npos);
}

// An answer overwrites neither a file of a sweep nor one of the user.
TEST_F(SweepCommand, MergingDestroysNothing) {
  EXPECT_EQ(sweep("run --output one --shards 2" + axes).code, 0);
  const std::string shard = "one/shard-00000-of-00002.jsonl";
  const std::string before = contents(path(shard));
  for (const std::string force : {"", " --force"}) {
    EXPECT_EQ(sweep("merge one -o " + shard + force).code, 2);
    EXPECT_EQ(sweep("merge one -o one/shard-00007-of-00008.jsonl" + force).code, 2);
    EXPECT_EQ(sweep("plot one -o one/../one/shard-1.svg" + force).code, 2);
  }
  EXPECT_EQ(contents(path(shard)), before);
  for (const std::string name : {"letter.csv", "letter.jsonl", "letter.sqlite"}) {
    std::ofstream{path(name)} << "Dear reader, this is a letter and no table.\n";
    const std::string letter = contents(path(name));
    EXPECT_EQ(sweep("merge one -o " + name).code, 2) << name;
    EXPECT_EQ(contents(path(name)), letter);
  }
  EXPECT_EQ(sweep("merge one -o letter.csv --force").code, 0);
  EXPECT_EQ(sweep("merge one -o letter.csv").code, 0);  // Its own now.
}

}  // namespace
}  // namespace orrery::sweep_test
