#include "sim/sweep/run_shard.hpp"

#include <vector>

#include "sim/core/progress.hpp"
#include "sim/core/shard.hpp"

namespace orrery {
namespace {

// The points of a shard one after the other.
class Share {
 public:
  Share(const Grid& grid, Shard shard) : grid_{grid}, shard_{shard} {}

  std::optional<std::int64_t> next() {
    for (; number_ < grid_.combinations(); ++number_) {
      if (!grid_.is_point(number_)) continue;
      if (place_++ % shard_.of == shard_.index) return number_++;
    }
    return std::nullopt;
  }

 private:
  const Grid& grid_;
  Shard shard_;
  std::int64_t number_ = 0;
  std::int64_t place_ = 0;  // Index among all points.
};

struct StoppedRow {
  std::int64_t place = 0;
  std::int64_t point = 0;
};

// One shard's way to its file.
class ShardRun {
 public:
  ShardRun(const SweepFolder& folder, Shard shard, const Grid& grid, PointEvaluator& evaluator,
           int workers, const WorkerLimits& limits, const ShardWatch& watch)
      : folder_{folder},
        shard_{shard},
        grid_{grid},
        evaluator_{evaluator},
        workers_{workers},
        limits_{limits},
        watch_{watch},
        header_{folder.header(shard)},
        whole_{shard_path(folder.path, shard)},
        part_{partial_shard_path(folder.path, shard)} {}

  void run() {
    const ShardContents there = read_shard(whole_, header_, note_stopped());
    if (!there.damage.empty()) report_damage(whole_, there.damage);
    if (!there.complete) {
      stopped_.clear();
      append_what_is_missing(there.rows);
    }
    if (!stopped_.empty() && !Interruption::requested()) try_again();
  }

 private:
  OnRow note_stopped() {
    return [this](std::int64_t place, const std::string& row) {
      if (is_stopped(row)) stopped_.push_back({place, point_of_row(row, {whole_, ""})});
    };
  }

  // `sound`: rows of a file that was complete once, and is damaged behind them.
  void append_what_is_missing(std::int64_t sound) {
    ShardWriter writer{folder_.path, shard_, header_, note_stopped()};
    if (!writer.damage().empty()) report_damage(part_, writer.damage());
    if (writer.rows() < sound) {
      ShardReader rows{whole_, header_, chunk};
      for (std::int64_t place = 0; place < sound; ++place) {
        const std::string row = *rows.next();
        if (place < writer.rows()) continue;
        note_stopped()(place, row);
        writer.append(row);
      }
    }
    Share share{grid_, shard_};
    std::optional<std::int64_t> last;
    for (std::int64_t row = 0; row < writer.rows(); ++row) last = share.next();
    if (last && point_of_row(writer.last_row(), {part_, ""}) != *last)
      fail_input({part_, ""}, "does not hold the rows that this sweep has there",
                 "remove the file; its points will be computed again");
    compute([&] { return share.next(); },
            [&](const std::string& row) {
              writer.append(row);
              watch_.on_row(row);
            });
    if (!Interruption::requested()) complete(writer);
  }

  // Computes the points that the machine stopped in an earlier run. All other rows are copied, so
  // that at every moment one of the two files has them.
  void try_again() {
    ShardWriter writer{folder_.path, shard_, header_};
    ShardReader rows{whole_, header_, chunk};
    std::int64_t read = 0;
    const auto copy_up_to = [&](std::int64_t place) {
      for (; read < place; ++read) {
        const std::optional<std::string> row = rows.next();
        if (read >= writer.rows()) writer.append(*row);
      }
    };
    std::size_t requested = 0, copied = 0;
    while (requested < stopped_.size() && stopped_[requested].place < writer.rows()) ++requested;
    copied = requested;
    compute(
        [&]() -> std::optional<std::int64_t> {
          if (requested == stopped_.size()) return std::nullopt;
          return stopped_[requested++].point;
        },
        [&](const std::string& row) {
          copy_up_to(stopped_[copied++].place);
          rows.next();
          ++read;
          writer.append(row);
        });
    if (Interruption::requested()) return;
    copy_up_to(header_.rows);
    complete(writer);
  }

  template <class Append>
  void compute(const std::function<std::optional<std::int64_t>()>& next, const Append& append) {
    run_tasks(workers_, limits_, next, std::ref(evaluator_), [&](const Outcome& outcome) {
      const PointStatus status = outcome.stopped ? PointStatus::stopped : PointStatus::failed;
      append(outcome.failure.empty()
                 ? outcome.bytes
                 : row_without_answer(grid_, outcome.task, status, outcome.failure));
      return true;
    });
  }

  // Rows of inputs that have changed would be mixed with those of others.
  void complete(ShardWriter& writer) {
    if (fingerprint_of_inputs(folder_.sweep) != folder_.fingerprint) {
      writer.discard();
      fail_input({part_, ""},
                 "is removed: a model, a system, a routing or another input changed while its rows "
                 "were computed",
                 "put the inputs back, or name another --output folder");
    }
    writer.complete();
  }

  void report_damage(const std::string& path, const std::string& damage) const {
    if (watch_.on_damage) watch_.on_damage(path + ": " + damage);
  }

  static constexpr std::size_t chunk = 1 << 20;
  const SweepFolder& folder_;
  const Shard shard_;
  const Grid& grid_;
  PointEvaluator& evaluator_;
  const int workers_;
  const WorkerLimits& limits_;
  const ShardWatch& watch_;
  const ShardHeader header_;
  const std::string whole_, part_;
  std::vector<StoppedRow> stopped_;  // Rows that an earlier run left.
};

}  // namespace

void run_shard(const SweepFolder& folder, Shard shard, const Grid& grid, PointEvaluator& evaluator,
               int workers, const WorkerLimits& limits, const ShardWatch& watch) {
  ShardRun{folder, shard, grid, evaluator, workers, limits, watch}.run();
}

}  // namespace orrery
