#include "sim/formats/shell/shell_script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/error.hpp"

namespace orrery::shell_script_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Given = std::map<std::string, std::string>;
using Lines = std::vector<std::string>;

// Commands as text, a word each in brackets.
Lines commands(const std::string& text, const Given& given = {}, const ShellFiles& files = {}) {
  Lines lines;
  for (const auto& command : read_shell_script(text, "jobs/run.sh", given, files).commands) {
    std::string line;
    for (const ShellWord& word : command) line += "[" + word.text + "]";
    lines.push_back(line);
  }
  return lines;
}
Lines notes(const std::string& text, const Given& given = {}) {
  return read_shell_script(text, "jobs/run.sh", given).notes;
}

TEST(ShellScript, QuotesCommentsAndContinuedLines) {
  EXPECT_EQ(commands("a 'b c' \"d e\" f\\ g # h\n# i\nj \\\n  k\\\r\nl"),
            (Lines{"[a][b c][d e][f g]", "[j][k][l]"}));
  EXPECT_EQ(commands("a; b | c && d || e &"), (Lines{"[a]", "[b]", "[c]", "[d]"}));
  EXPECT_EQ(commands("a#b 'x'\"y\"z"), (Lines{"[a#b][xyz]"}));
  EXPECT_EQ(commands("x ''"), (Lines{"[x][]"}));
  EXPECT_EQ(commands("a >log 2>&1 b <in &>all"), (Lines{"[a][b]"}));
}

TEST(ShellScript, Variables) {
  EXPECT_EQ(commands("TP=8\nexport PP=\"$TP\"\nrun $TP ${PP}x \"a $TP\" '$TP'"),
            (Lines{"[run][8][8x][a 8][$TP]"}));
  EXPECT_EQ(commands("run $TP $(hostname) $1 $ \"${A}/x\""),
            (Lines{"[run][$TP][$(hostname)][$1][$][$A/x]"}));
  EXPECT_EQ(commands("A=' x  y '\nrun $A \"$A\" a${A}b"),
            (Lines{"[run][x][y][ x  y ][a][x][y][b]"}));
  EXPECT_EQ(commands("f() { run ${1} ${01} ${00} ${02-none}; }\nf a"),
            (Lines{"[run][a][a][jobs/run.sh][none]"}));
}

// The output of Bash 5.2 for the same lines.
TEST(ShellScript, Defaults) {
  EXPECT_EQ(commands("E=\nrun ${TP:-4} ${PP-2} ${E:-x} \"${E-x}\" ${CP:-} ${A:-\"b c\"}"),
            (Lines{"[run][4][2][x][][b][c]"}));
  EXPECT_EQ(commands("B=2\nrun ${A:-${B}/${C:-3}}"), (Lines{"[run][2/3]"}));
  EXPECT_EQ(commands(": ${GBS:=64}\nrun $GBS ${GBS:+set} ${X:+unset} ${GBS:?needed}"),
            (Lines{"[run][64][set][64]"}));
}

TEST(ShellScript, ChangesOfValues) {
  EXPECT_EQ(commands("P=/a/b.tar.gz\nrun ${P##*/} ${P%%.*} ${P%.*} ${P#/} ${P/a/c} ${P//[ab]/x}"),
            (Lines{"[run][b.tar.gz][/a/b][/a/b.tar][a/b.tar.gz][/c/b.tar.gz][/x/x.txr.gz]"}));
  EXPECT_EQ(commands("P=Llama\nrun ${P^^} ${P,,} ${P:0:2} ${P:2} ${#P} ${!Q}\n"),
            (Lines{"[run][LLAMA][llama][Ll][ama][5][$Q]"}));
  EXPECT_EQ(commands("A=B\nB=3\nrun ${!A}"), (Lines{"[run][3]"}));
}

TEST(ShellScript, Arrays) {
  EXPECT_EQ(
      commands("ARGS=(--a 1  # one\n  --b \"2 3\")\nARGS+=(--c)\nrun \"${ARGS[@]}\" ${#ARGS[@]}"),
      (Lines{"[run][--a][1][--b][2 3][--c][5]"}));
  EXPECT_EQ(
      commands("L=(1.7B 3.6B)\nT=(1 2)\nrun ${L[$I]} ${T[I]} ${T[1]} ${T[$I+1]}", {{"I", "0"}}),
      (Lines{"[run][1.7B][1][2][2]"}));
  EXPECT_EQ(commands("declare -A TP=([small]=1 [large]=8)\nTP[huge]=16\nM=large\n"
                     "run ${TP[$M]} ${TP[huge]} ${TP[small]}"),
            (Lines{"[run][8][16][1]"}));
  EXPECT_EQ(commands("A=()\nrun \"${A[@]}\" x"), (Lines{"[run][x]"}));
}

TEST(ShellScript, Arithmetic) {
  EXPECT_EQ(
      commands("G=8\nN=4\nrun $((G*N)) $(($G * ${N})) $((2**3+1)) $(( (G+1)/2 )) $((G>N?1:2))"),
      (Lines{"[run][32][32][9][4][1]"}));
  // The first name that is never set is what is missing.
  EXPECT_EQ(commands("G=8\nW=$((G*NODES))\nrun $W $((W/2)) $((1/0))"),
            (Lines{"[run][$NODES][$NODES][$((1/0))]"}));
}

TEST(ShellScript, BranchesAreFollowed) {
  const std::string script =
      "if [ \"$M\" = small ]; then L=2\nelif [[ $M == l* && -n $M ]]; then L=4\nelse L=8; fi\n"
      "run $L";
  EXPECT_EQ(commands(script, {{"M", "small"}}), Lines{"[run][2]"});
  EXPECT_EQ(commands(script, {{"M", "large"}}), Lines{"[run][4]"});
  EXPECT_EQ(commands(script), Lines{"[run][8]"});
  EXPECT_THAT(notes(script), ElementsAre("not set, so empty in conditions (--set NAME=VALUE sets "
                                         "one): $M"));
  EXPECT_EQ(commands("[ $((2*4)) -eq 8 ] && A=1 || A=2\nrun $A"), Lines{"[run][1]"});
  EXPECT_EQ(commands("A=1\n! true || A=2\nif ((A > 1)); then run two; fi"), Lines{"[run][two]"});
  EXPECT_EQ(commands("case \"$1\" in\n 8b|small) L=32;;\n (*B) L=80 ;;\n *) L=1;; esac\nrun $L",
                     {{"1", "70B"}}),
            Lines{"[run][80]"});
}

// Defaults by -z are the usual way to take a variable from outside, and need no remark.
TEST(ShellScript, UnsetVariablesCountAsEmpty) {
  const std::string script = "if [ -z ${TP} ]; then TP=1; fi\n[[ -v CP ]] || CP=2\nrun $TP $CP";
  EXPECT_EQ(commands(script), Lines{"[run][1][2]"});
  EXPECT_THAT(notes(script), IsEmpty());
  EXPECT_EQ(commands(script, {{"TP", "8"}, {"CP", "4"}}), Lines{"[run][8][4]"});
  // Also where it went through an assignment.
  EXPECT_EQ(commands("M=$1\nrun ${M:-mock} $M"), Lines{"[run][mock][$1]"});
}

TEST(ShellScript, WhatOnlyAFileOrProgramCouldSay) {
  // A check that ends the script passes; other conditional assignments are left out, and reported.
  EXPECT_EQ(commands("if [ ! -f x ]; then echo no; exit 1; fi\nrun a"), Lines{"[run][a]"});
  const std::string script = "if [ -d /data ]; then\n A=1\nelse\n A=2\nfi\nrun $A";
  EXPECT_EQ(commands(script), Lines{"[run][2]"});
  EXPECT_THAT(notes(script),
              ElementsAre("run.sh: line 2: up to line 3: left out, as only a program or a file "
                          "could say whether it is reached"));
  EXPECT_EQ(commands("if nvidia-smi; then exit 1; else A=2; fi\nrun $A"),
            (Lines{"[nvidia-smi]", "[run][2]"}));
  EXPECT_EQ(commands("N=$(scontrol show job | wc -l)\nif [ $N -gt 1 ]; then A=1; fi\nrun $N $A"),
            Lines{"[run][$N][$A]"});
}

TEST(ShellScript, LoopsAndFunctions) {
  EXPECT_EQ(commands("for i in 1 2; do run $i; done"), (Lines{"[run][1]", "[run][2]"}));
  EXPECT_EQ(
      commands("add() {\n local A=$1\n ARGS+=(--$A $2)\n}\nadd tp 8\nadd pp 2\nrun ${ARGS[@]} $1"),
      Lines{"[run][--tp][8][--pp][2][$1]"});
  EXPECT_EQ(commands("function f { run $#; }\nf a b"), Lines{"[run][2]"});
  const std::string options =
      "while [[ $# -gt 0 ]]; do\n case $1 in\n  --tp) TP=$2; shift; shift;;\n  *) shift;;\n esac\n"
      "done\nrun ${TP:-1}";
  EXPECT_EQ(commands(options), Lines{"[run][1]"});
  EXPECT_EQ(commands(options, {{"1", "--tp"}, {"2", "8"}}), Lines{"[run][8]"});
  EXPECT_EQ(commands("while true; do A=1; done\nrun $A"), Lines{"[run][1]"});  // Ends, too.
}

TEST(ShellScript, TextsThatAreScripts) {
  EXPECT_EQ(
      commands("A=1\nCMD=\"cd x; torchrun \\\n --a $A\"\nsrun -N 2 bash -x -c \"$CMD\" | tee y"),
      (Lines{"[srun][-N][2][bash][-x][-c]", "[torchrun][--a][1]", "[tee][y]"}));
  EXPECT_EQ(commands("CMD='run $A'\nA=2\neval \"$CMD\""), Lines{"[run][2]"});
  EXPECT_EQ(
      commands("N=4\nsbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=$N\nsrun run \\$M\nEOF\nnext"),
      (Lines{"[#SBATCH][--nodes=4]", "[srun][run][$M]", "[sbatch]", "[next]"}));
  EXPECT_EQ(commands("cat > job.sh <<'EOF'\nA=3\nrun $A\nEOF\n"), (Lines{"[run][3]", "[cat]"}));
  EXPECT_EQ(commands("cat > job <<'EOF'\n#!/bin/bash\nrun\nEOF\n"), (Lines{"[run]", "[cat]"}));
  EXPECT_EQ(commands("cat <<EOF | sbatch -N 2\nrun\nEOF\n"),
            (Lines{"[cat]", "[run]", "[sbatch][-N][2]"}));
  EXPECT_EQ(commands("cat <<EOF > job.sh && sbatch -N 2 job.sh; run 1\nrun\nEOF\nrun 2"),
            (Lines{"[run]", "[cat]", "[sbatch][-N][2][job.sh]", "[run][1]", "[run][2]"}));
  EXPECT_EQ(commands("if true; then bash <<A <<-B; fi\nrun 1\nA\n\trun 2\n\tB\nrun 3"),
            (Lines{"[run][2]", "[bash]", "[run][3]"}));
  EXPECT_EQ(commands("A=8\ncat <<EOF\nA=9\nrun $A\nEOF\nrun $A"), (Lines{"[cat]", "[run][8]"}));
  EXPECT_EQ(commands("cat > c.yaml <<EOF\nA=9\nEOF\ncat > c.py <<EOF\n#!/usr/bin/python\nA=9\n"
                     "EOF\nrun $A"),
            (Lines{"[cat]", "[cat]", "[run][$A]"}));
}

TEST(ShellScript, DocumentsThatVariablesHold) {
  EXPECT_EQ(commands("N=4\nA=$(cat <<EOT\n--tp $N\n--pp 2\n\nEOT\n)\nrun $A"),
            Lines{"[run][--tp][4][--pp][2]"});
}

// A step of a job on one node leaves the job's own variables as they are.
TEST(ShellScript, StepsOfASlurmJob) {
  const std::string job = "#SBATCH --nodes=4\n";
  EXPECT_EQ(commands(job + "srun --nodes=1 ray start\nrun $SLURM_NNODES").back(), "[run][4]");
  EXPECT_EQ(commands("srun -N 2 a\nrun $SLURM_NNODES").back(), "[run][2]");
  EXPECT_EQ(commands(job + "n=( $(scontrol show hostnames $SLURM_JOB_NODELIST) )\nrun ${#n[@]} "
                           "${n[1]}")
                .back(),
            "[run][4][node1]");
  EXPECT_EQ(commands("n=( $(other) )\nrun ${#n[@]}").back(), "[run][${#n[@]}]");
}

TEST(ShellScript, LoopsThatEndEarly) {
  EXPECT_EQ(commands("for n in 8 16 32; do [ $n -gt 10 ] && break; X=$n; done\nrun $X"),
            Lines{"[run][8]"});
  EXPECT_EQ(commands("X=0; while true; do X=$((X+1)); [ $X -gt 4 ] && break; done\nrun $X"),
            Lines{"[run][5]"});
  EXPECT_EQ(commands("S=0; for i in 1 2 3 4; do [ $i = 2 ] && continue; S=$((S+i)); done\nrun $S"),
            Lines{"[run][8]"});
  EXPECT_EQ(commands("for i in 1 2; do for k in 1 2; do break; done; X=$i; done\nrun $X $k"),
            Lines{"[run][2][1]"});
}

TEST(ShellScript, VariablesOfFunctions) {
  EXPECT_EQ(commands("f() { local X=9 Y; Y=1; Z=2; }; X=3; Y=4; f\nrun $X $Y $Z"),
            Lines{"[run][3][4][2]"});
  EXPECT_EQ(commands("f() { local X=9; g; }; g() { run $X; }; X=3; f\nrun $X"),
            (Lines{"[run][9]", "[run][3]"}));
}

TEST(ShellScript, LinesThatGoOnWithinAWord) {
  EXPECT_EQ(commands("X=1\\\n28\nY=\"4\\\n5\"\nrun $X $Y --n 1\\\n2 \\\n --m 3\\\n"),
            Lines{"[run][128][45][--n][12][--m][3]"});
}

TEST(ShellScript, Calculates) {
  EXPECT_EQ(commands("run $((2**3**2)) $((2*3**2))"), Lines{"[run][512][18]"});
  EXPECT_EQ(commands("N=2\n((N = N * 4))\nrun $N"), Lines{"[run][8]"});
  EXPECT_EQ(commands("N=2\nlet N=N*4 M=N+1\nrun $N $M"), Lines{"[run][8][9]"});
  EXPECT_EQ(commands("N=2; let \"N += 4 - 1\"; let 'N -= 1'\nrun $N"), Lines{"[run][4]"});
  EXPECT_EQ(commands("N=6; ((N*=1+1)); ((N/=4)); ((N%=2))\nrun $N"), Lines{"[run][1]"});
  EXPECT_EQ(commands("I=0; while ((I < 5)); do ((I++)); let ++I; done\nrun $I"), Lines{"[run][6]"});
  EXPECT_EQ(commands("I=2; ((I--)); ((--I)) || A=1\nrun $I $A"), Lines{"[run][0][1]"});
  EXPECT_EQ(commands("N=2\nif ((N == 2 && N >= 2 && N <= 2 && N != 3)); then run $N; fi"),
            Lines{"[run][2]"});
  EXPECT_EQ(commands("let N=M*2\nrun $N"), Lines{"[run][$M]"});
}

TEST(ShellScript, FilesThatItReads) {
  const auto files = [](const std::string& path) -> std::optional<std::string> {
    if (path == "jobs/conf/model.sh") return "MODEL=(--num-layers 4)\nB=$1\n";
    return std::nullopt;
  };
  EXPECT_EQ(
      commands("source \"$(dirname \"$0\")/conf/$1.sh\"\nrun ${MODEL[@]}", {{"1", "model"}}, files),
      Lines{"[run][--num-layers][4]"});
  EXPECT_EQ(
      commands("D=$(cd $(dirname \"${BASH_SOURCE[0]}\") && pwd)\n. $D/conf/model.sh 7\nrun $B", {},
               files),
      Lines{"[run][7]"});
  EXPECT_EQ(commands(". `pwd`/conf/model.sh\nrun $MODEL", {}, files), Lines{"[run][--num-layers]"});
  EXPECT_THAT(notes("source env.sh\n"), ElementsAre(HasSubstr("line 1: not read: env.sh")));
  const ShellScript script =
      read_shell_script(". conf/model.sh\nrun ${MODEL[@]}", "jobs/run.sh", {}, files);
  EXPECT_EQ(script.files[script.commands[0][1].file], "jobs/conf/model.sh");
}

TEST(ShellScript, SlurmSetsTheEnvironment) {
  EXPECT_EQ(
      commands("#SBATCH --nodes=4 --gres=gpu:h100:8 # all\n#SBATCH -n 32\n"
               "run ${SLURM_NNODES:-1} $SLURM_GPUS_ON_NODE $SLURM_NTASKS"),
      (Lines{"[#SBATCH][--nodes=4][--gres=gpu:h100:8]", "[#SBATCH][-n][32]", "[run][4][8][32]"}));
}

TEST(ShellScript, GivenVariablesWin) {
  EXPECT_EQ(commands("TP=8\nTP+=1\nrun $TP $PP", {{"TP", "2"}, {"PP", "4"}}),
            (Lines{"[run][2][4]"}));
}

TEST(ShellScript, LinesOfWords) {
  const ShellScript script = read_shell_script("a\n\nb \\\n c\nD=(x\ny)\n${D[@]}\n", "run.sh", {});
  ASSERT_EQ(script.commands.size(), 3u);
  EXPECT_EQ(script.commands[1][0].line, 2u);
  EXPECT_EQ(script.commands[1][1].line, 3u);
  EXPECT_EQ(script.commands[2][0].line, 4u);
  EXPECT_EQ(script.commands[2][1].line, 5u);  // Where it stands in the array.
}

// Each line doubles what the one before made: 2^40 letters.
TEST(ShellScript, VariablesThatGrowWithoutEndAreRefused) {
  std::string text = "A=xxxxxxxx\n";
  for (int i = 0; i < 40; ++i) text += "A=$A$A\n";
  EXPECT_THROW(read_shell_script(text, "run.sh", {}), Error);
  text = "A=(x)\n";
  for (int i = 0; i < 40; ++i) text += "A+=(${A[@]})\n";
  EXPECT_THROW(read_shell_script(text, "run.sh", {}), Error);
}

// Texts that are no scripts, or not whole ones, have some words all the same.
TEST(ShellScript, AnyTextHasWords) {
  for (const char* text : {"if",
                           "if true; then run",
                           "fi",
                           "done; run",
                           "case x in",
                           "((",
                           "$((",
                           "${",
                           "${A[",
                           "`",
                           "<<",
                           "<<EOF",
                           "f() {",
                           "[[ a",
                           "a=(",
                           "! ! !",
                           "f() { f; }; f",
                           "A=${A}${A:-$A}; run ${A:${A}}",
                           "for",
                           "for ((i=0;i<4;i++)); do run; done"})
    EXPECT_NO_THROW(read_shell_script(text, "run.sh", {})) << text;
  EXPECT_EQ(commands(") run a"), Lines{"[run][a]"});
  std::string deep;
  for (int i = 0; i < 5'000; ++i) deep += "if ( { x; ! ";
  EXPECT_NO_THROW(read_shell_script(deep, "run.sh", {}));
  deep.clear();
  for (int i = 0; i < 5'000; ++i) deep += "a && ";
  EXPECT_NO_THROW(read_shell_script(deep, "run.sh", {}));
}

// The output of Bash 5.2 for the same lines.
TEST(ShellScript, AStarJoinsTheWordsOfAnArray) {
  EXPECT_EQ(commands("A=(a b 'c d')\nx \"${A[*]}\" \"${A[@]}\" \"<${A[*]}>\" \"<${A[@]}>\""),
            (Lines{"[x][a b c d][a][b][c d][<a b c d>][<a][b][c d>]"}));
  EXPECT_EQ(commands("f() { x \"$*\" \"$@\"; }\nf 1 2"), (Lines{"[x][1 2][1][2]"}));
  EXPECT_EQ(commands("A=(--tp 2 --pp 4)\nsrun bash -c \"torchrun ${A[*]} x.py --bf16\""),
            (Lines{"[srun][bash][-c]", "[torchrun][--tp][2][--pp][4][x.py][--bf16]"}));
}

TEST(ShellScript, PartsOfArrays) {
  EXPECT_EQ(commands("A=(a b c d)\nx \"${A[@]:2}\" / ${A[@]:1:2} / ${A[*]:9} / ${A[@]::1}"),
            (Lines{"[x][c][d][/][b][c][/][/][a]"}));
  EXPECT_EQ(commands("f() { x \"${@:2}\"; }\nf 1 2 3"), (Lines{"[x][2][3]"}));
}

TEST(ShellScript, EchoPrintsWhatLooksLikeOptions) {
  EXPECT_EQ(commands("A=(--a 1)\nx $(echo --flag) `echo --b 2` $(echo -n 3) $(echo ${A[@]})"),
            (Lines{"[x][--flag][--b][2][3][--a][1]"}));
}

// Arguments that only a program or a file could tell.
TEST(ShellScript, UnknownArgumentsAreNoted) {
  const std::string begin = "python train.py --tp 2 --pp 2 ";
  for (const char* end : {"/ $EXTRA_ARGS", "/ $(cat more.txt)", "--bf16 $EXTRA_ARGS",
                          "--bf16 $(cat more.txt)", "--bf16 `cat more.txt`"})
    EXPECT_THAT(notes(begin + end), testing::Contains(HasSubstr("as nothing says what it is")))
        << end;
  EXPECT_THAT(notes("mapfile -t X < args.txt\n" + begin + "/ $X"),
              testing::Contains(HasSubstr("as nothing says what it is")));
  // A value that a flag has is refused where it matters.
  EXPECT_THAT(notes(begin + "--master_addr $(hostname) --node_rank $RANK --bf16"), IsEmpty());
}

}  // namespace
}  // namespace orrery::shell_script_test
