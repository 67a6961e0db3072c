//! Holds the table of commands: which of their options only read, which write, and which run something.
//!
//! `-v` takes no value, `-n=` takes one in the same word or in the next, `--color[=]` one in the same word
//! only, and `-NUM` is a number such as `-5`. "Runs" also covers options that name a program, a folder or a
//! configuration to run from, and options that choose another account or server. An option that is not listed
//! is unknown, and asked.
//!
//! Commands that run the project (`npm test`, `cargo build`) do what their name says: their entries list the
//! options that do not change what is run. [`offered`] entries may appear on a card, other entries are for
//! rules that people typed.

use super::{Behind, Form, Operands, Style};

/// Creates an entry that the card may offer.
const fn offered(command: &'static str, reads: &'static [&'static str]) -> Form {
    Form {
        is_offered: true,
        ..typed(command, reads)
    }
}

/// Creates an entry for rules that people typed.
const fn typed(command: &'static str, reads: &'static [&'static str]) -> Form {
    Form {
        command,
        reads,
        writes: "",
        runs: "",
        style: Style::Letters,
        operands: Operands::Any,
        behind: Behind::Operands,
        is_complete: false,
        is_offered: false,
        is_of_folder: false,
        needs: None,
        running_texts: &[],
        is_global: false,
    }
}

/// Creates an entry for a program whose manual lists only options that read.
const fn reader(command: &'static str, reads: &'static [&'static str]) -> Form {
    Form {
        is_complete: true,
        ..offered(command, reads)
    }
}

/// Creates an entry for the options before the subcommands of a program.
const fn global(command: &'static str, reads: &'static [&'static str], runs: &'static str) -> Form {
    Form {
        is_global: true,
        runs,
        ..typed(command, reads)
    }
}

impl Form {
    const fn writes(mut self, options: &'static str) -> Self {
        self.writes = options;
        self
    }

    const fn runs(mut self, options: &'static str) -> Self {
        self.runs = options;
        self
    }

    const fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    const fn operands(mut self, operands: Operands) -> Self {
        self.operands = operands;
        self
    }

    const fn behind(mut self, behind: Behind) -> Self {
        self.behind = behind;
        self
    }

    const fn needs(mut self, option: &'static str) -> Self {
        self.needs = Some(option);
        self
    }

    /// Marks a command that depends on files of the folder in which it runs.
    const fn of_folder(mut self) -> Self {
        self.is_of_folder = true;
        self
    }

    /// Marks a command of git, which starts `gpg` for these format texts.
    const fn of_git(mut self) -> Self {
        self.running_texts = &["%G", "%(signature"];
        self.is_of_folder = true;
        self
    }
}

const HELP: &str = "--help --version";

/// `git`: options that format differences.
const DIFF: &str = "-p -u --patch -s --no-patch -U= --unified= --output-indicator-new= \
    --output-indicator-old= --output-indicator-context= --raw --patch-with-raw --indent-heuristic \
    --no-indent-heuristic --minimal --patience --histogram --anchored= --diff-algorithm= --stat[=] \
    --stat-width= --stat-name-width= --stat-count= --stat-graph-width= --compact-summary --numstat \
    --shortstat -X[=] --dirstat[=] --cumulative --dirstat-by-file[=] --summary --patch-with-stat -z \
    --name-only --name-status --color[=] --no-color --color-moved[=] --no-color-moved \
    --color-moved-ws= --no-color-moved-ws --word-diff[=] --word-diff-regex= --color-words[=] \
    --no-renames --rename-empty --no-rename-empty --check --ws-error-highlight= --full-index --binary \
    --abbrev[=] --no-abbrev -B[=] --break-rewrites[=] -M[=] --find-renames[=] -C[=] --find-copies[=] \
    --find-copies-harder -D --irreversible-delete -l= --diff-filter= -S= -G= --find-object= \
    --pickaxe-all --pickaxe-regex -O= --skip-to= --rotate-to= -R --relative[=] --no-relative -a --text \
    --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space \
    --ignore-blank-lines -I= --ignore-matching-lines= --inter-hunk-context= -W --function-context \
    --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules[=] --src-prefix= \
    --dst-prefix= --no-prefix --default-prefix --line-prefix= --ita-invisible-in-index \
    --ita-visible-in-index -m --diff-merges= --no-diff-merges --cc -c --combined-all-paths -t --dd";
const DIFF_WRITES: &str = "--output= --remerge-diff";
const DIFF_RUNS: &str = "--ext-diff --textconv --submodule[=] --recurse-submodules --show-signature \
    --help";

/// `git log` and `git show`: options that select and format commits.
const COMMITS: &str = "--max-count= -n= -NUM --skip= --since= --after= --until= --before= \
    --since-as-filter= --author= --committer= --grep-reflog= --grep= --all-match --invert-grep -i \
    --regexp-ignore-case --basic-regexp -E --extended-regexp -F --fixed-strings -P --perl-regexp \
    --remove-empty --merges --no-merges --min-parents= --max-parents= --no-min-parents \
    --no-max-parents --first-parent --exclude-first-parent-only --not --all --branches[=] --tags[=] \
    --remotes[=] --glob= --exclude= --exclude-hidden= --reflog --single-worktree --ignore-missing \
    --bisect --cherry-mark --cherry-pick --left-only --right-only --cherry -g --walk-reflogs --merge \
    --boundary --simplify-by-decoration --show-pulls --full-history --dense --sparse \
    --simplify-merges --ancestry-path[=] --date-order --author-date-order --topo-order --reverse \
    --no-walk[=] --do-walk --pretty[=] --format= --abbrev-commit --no-abbrev-commit --oneline \
    --encoding= --expand-tabs[=] --no-expand-tabs --notes[=] --no-notes --show-notes[=] \
    --show-notes-by-default --standard-notes --no-standard-notes --relative-date --date= --parents \
    --children --left-right --graph --no-graph --show-linear-break[=] --follow --no-decorate \
    --decorate[=] --decorate-refs= --decorate-refs-exclude= --clear-decorations --source --mailmap \
    --use-mailmap --no-mailmap --no-use-mailmap --full-diff --log-size -L= -q";

/// `npm`: options of the output.
const NPM: &str = "--silent -s --quiet -q -d -dd -ddd --verbose --json --long -l --parseable -p \
    --color[=] --no-color --loglevel= --no-fund --no-audit --no-update-notifier --unicode \
    --no-unicode --offline --prefer-offline --no-progress";
const NPM_RUNS: &str = "--script-shell= --node-options= --prefix= -C= --userconfig= --globalconfig= \
    --shell= --git= --editor= --viewer= --browser= --scripts-prepend-node-path= --workspace= -w= \
    --workspaces -ws --include-workspace-root --registry= --init-module= --call= -c= --cache= \
    --ignore-scripts[=] --location= --global -g";
const NPM_WRITES: &str = "--logs-dir= --save --force -f --fix --timing";

/// `cargo`: options that select packages, targets and features, and how they are built.
const CARGO: &str = "-q --quiet -v -vv --verbose --color= -p= --package= --workspace --all --exclude= \
    --lib --bins --bin= --examples --example= --tests --test= --benches --bench= --all-targets -F= \
    --features= --all-features --no-default-features -j= --jobs= -r --release --profile= --locked \
    --offline --frozen --message-format= --keep-going --ignore-rust-version --future-incompat-report \
    -h --help";
const CARGO_RUNS: &str = "--config= --manifest-path= -C= -Z= --target= --lockfile-path=";
const CARGO_WRITES: &str = "--target-dir= --artifact-dir= --out-dir= --timings[=] --fix --allow-dirty \
    --allow-staged --build-plan";
const LIBTEST: &str = "--nocapture --no-capture --show-output --test-threads= --ignored \
    --include-ignored --exact --skip= --list -q --quiet --color= --bench --test --format= --report-time[=]";

/// `go`: options that control how packages are built.
const GO: &str = "-v -x -n -race -msan -asan -p= -tags= -trimpath -buildvcs[=] -json[=]";
const GO_RUNS: &str = "-exec= -toolexec= -vettool= -ldflags= -gcflags= -asmflags= -gccgoflags= \
    -compiler= -overlay= -modfile= -C= -args -pgo= -buildmode= -linkshared -installsuffix= -modcacherw";
const GO_WRITES: &str = "-o= -c -i -coverprofile= -cpuprofile= -memprofile= -blockprofile= \
    -mutexprofile= -trace= -outputdir= -work -pkgdir= -mod= -a -fix -w -testlogfile= -gocoverdir=";

/// `docker`: options that select the engine.
const DOCKER_RUNS: &str = "-H= --host= --config= -c= --context= --tlscacert= --tlscert= --tlskey= --tls \
    --tlsverify";

/// The table, with each command once.
pub(super) const FORMS: &[Form] = &[
    // Programs all of whose options only read.
    reader("basename", &[HELP, "-a --multiple -s= --suffix= -z --zero"]),
    reader(
        "cat",
        &[HELP, "-A --show-all -b --number-nonblank -e -E --show-ends -n --number -s \
           --squeeze-blank -t -T --show-tabs -u -v --show-nonprinting"],
    ),
    reader("cd", &["-L -P -e -@"]),
    reader(
        "cmp",
        &[HELP, "-b --print-bytes -i= --ignore-initial= -l --verbose -n= --bytes= -s --quiet --silent \
           -v"],
    ),
    reader(
        "cut",
        &[HELP, "-b= --bytes= -c= --characters= -d= --delimiter= -f= --fields= -n --complement -s \
           --only-delimited --output-delimiter= -z --zero-terminated"],
    ),
    reader(
        "df",
        &[HELP, "-a --all -B= --block-size= -h --human-readable -H --si -i --inodes -k -l --local \
           --no-sync --output[=] -P --portability --sync --total -t= --type= -T --print-type -x= \
           --exclude-type= -v"],
    ),
    reader("dirname", &[HELP, "-z --zero"]),
    reader(
        "du",
        &[HELP, "-0 --null -a --all --apparent-size -B= --block-size= -b --bytes -c --total -D \
           --dereference-args -d= --max-depth= --files0-from= -H -h --human-readable --inodes -k -L \
           --dereference -l --count-links -m -P --no-dereference -S --separate-dirs --si -s \
           --summarize -t= --threshold= --time[=] --time-style= -X= --exclude-from= --exclude= -x \
           --one-file-system"],
    ),
    reader("echo", &["-n -e -E"]),
    reader("false", &[HELP]),
    reader(
        "grep",
        &[HELP, "-E --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp -e= \
           --regexp= -f= --file= -i --ignore-case --no-ignore-case -y -w --word-regexp -x \
           --line-regexp -z --null-data -s --no-messages -v --invert-match -V -m= --max-count= -b \
           --byte-offset -n --line-number --line-buffered -H --with-filename -h --no-filename \
           --label= -o --only-matching -q --quiet --silent --binary-files= -a --text -I -d= \
           --directories= -D= --devices= -r --recursive -R --dereference-recursive --include= \
           --exclude= --exclude-from= --exclude-dir= -L --files-without-match -l \
           --files-with-matches -c --count -T --initial-tab -Z --null -B= --before-context= -A= \
           --after-context= -C= --context= -NUM --group-separator= --no-group-separator --color[=] \
           --colour[=] -U --binary"],
    ),
    reader(
        "head",
        &[HELP, "-c= --bytes= -n= --lines= -q --quiet --silent -v --verbose -z --zero-terminated -NUM"],
    ),
    reader(
        "jq",
        &[HELP, "-n --null-input -R --raw-input -s --slurp -c --compact-output -r --raw-output -j \
           --join-output -a --ascii-output -S --sort-keys -C --color-output -M --monochrome-output \
           --tab --indent= --stream --stream-errors --seq -f= --from-file= -L= -e --exit-status \
           --arg= --argjson= --slurpfile= --rawfile= --args --jsonargs -h -V --raw-output0 --unbuffered"],
    )
    .style(Style::LettersOnly),
    reader(
        "ls",
        &[HELP, "-a --all -A --almost-all --author -b --escape --block-size= -B --ignore-backups -c -C \
           --color[=] -d --directory -D --dired -f -F --classify[=] --file-type --format= --full-time \
           -g --group-directories-first -G --no-group -h --human-readable --si -H \
           --dereference-command-line --dereference-command-line-symlink-to-dir --hide= \
           --hyperlink[=] --indicator-style= -i --inode -I= --ignore= -k --kibibytes -l -L \
           --dereference -m -n --numeric-uid-gid -N --literal -o -p -q --hide-control-chars \
           --show-control-chars -Q --quote-name --quoting-style= -r --reverse -R --recursive -s \
           --size -S --sort= --time= --time-style= -t -T= --tabsize= -u -U -v -w= --width= -x -X -Z \
           --context --zero -1"],
    ),
    reader(
        "md5sum",
        &[HELP, "-b --binary -c --check --tag -t --text -z --zero --ignore-missing --quiet --status \
           --strict -w --warn"],
    ),
    reader(
        "nl",
        &[HELP, "-b= --body-numbering= -d= --section-delimiter= -f= --footer-numbering= -h= \
           --header-numbering= -i= --line-increment= -l= --join-blank-lines= -n= --number-format= -p \
           --no-renumber -s= --number-separator= -v= --starting-line-number= -w= --number-width="],
    ),
    reader(
        "od",
        &[HELP, "-A= --address-radix= --endian= -j= --skip-bytes= -N= --read-bytes= -S= --strings[=] -t= \
           --format= -v --output-duplicates -w[=] --width[=] --traditional -a -b -c -d -f -i -l -o -s \
           -x"],
    ),
    reader("pwd", &[HELP, "-L --logical -P --physical"]),
    reader(
        "realpath",
        &[HELP, "-e --canonicalize-existing -m --canonicalize-missing -L --logical -P --physical -q \
           --quiet --relative-to= --relative-base= -s --strip --no-symlinks -z --zero"],
    ),
    reader("seq", &[HELP, "-f= --format= -s= --separator= -w --equal-width -NUM"]),
    reader(
        "sha256sum",
        &[HELP, "-b --binary -c --check --tag -t --text -z --zero --ignore-missing --quiet --status \
           --strict -w --warn"],
    ),
    reader("sleep", &[HELP]),
    reader(
        "stat",
        &[HELP, "-L --dereference -f --file-system --cached= -c= --format= --printf= -t --terse"],
    ),
    reader(
        "tail",
        &[HELP, "-c= --bytes= -f --follow[=] -F -n= --lines= --max-unchanged-stats= --pid= -q --quiet \
           --silent --retry -s= --sleep-interval= -v --verbose -z --zero-terminated -NUM"],
    ),
    reader(
        "tr",
        &[HELP, "-c -C --complement -d --delete -s --squeeze-repeats -t --truncate-set1"],
    ),
    reader("true", &[HELP]),
    reader(
        "uname",
        &[HELP, "-a --all -s --kernel-name -n --nodename -r --kernel-release -v --kernel-version -m \
           --machine -p --processor -i --hardware-platform -o --operating-system"],
    ),
    reader(
        "wc",
        &[HELP, "-c --bytes -m --chars -l --lines --files0-from= -L --max-line-length -w --words \
           --total="],
    ),
    reader("which", &["-a -s"]),
    reader("whoami", &[HELP]),
    // Programs that read, with some options that do more.
    offered(
        "date",
        &[HELP, "-d= --date= --debug -f= --file= -I[=] --iso-8601[=] --resolution -R --rfc-email \
           --rfc-3339= -r= --reference= -u --utc --universal"],
    )
    .writes("-s= --set=")
    .operands(Operands::Formats),
    offered(
        "diff",
        &[HELP, "--normal -q --brief -s --report-identical-files -c -C= --context[=] -u -U= --unified[=] \
           -e --ed -n --rcs -y --side-by-side -W= --width= --left-column --suppress-common-lines -p \
           --show-c-function -F= --show-function-line= --label= -L= -t --expand-tabs -T --initial-tab \
           --tabsize= --suppress-blank-empty -r --recursive --no-dereference -N --new-file \
           --unidirectional-new-file --ignore-file-name-case --no-ignore-file-name-case -x= \
           --exclude= -X= --exclude-from= -S= --starting-file= --from-file= --to-file= -i \
           --ignore-case -E --ignore-tab-expansion -Z --ignore-trailing-space -b \
           --ignore-space-change -w --ignore-all-space -B --ignore-blank-lines -I= \
           --ignore-matching-lines= -a --text --strip-trailing-cr -D= --ifdef= --line-format= -d \
           --minimal --horizon-lines= --speed-large-files --color[=] --palette= -v -NUM"],
    )
    .runs("-l --paginate"),
    offered(
        "file",
        &[HELP, "-v -b --brief -c --checking-printout -e= --exclude= --exclude-quiet= -f= --files-from= \
           -F= --separator= -i --mime --apple --extension --mime-type --mime-encoding -k --keep-going \
           -l --list -L --dereference -h --no-dereference -n --no-buffer -N --no-pad -0 --print0 -P= \
           --parameter= -r --raw -s --special-files -d --debug"],
    )
    .writes("-C --compile -p --preserve-date")
    .runs("-z --uncompress -Z --uncompress-noreport -m= --magic-file= -S --no-sandbox"),
    offered(
        "find",
        &["-H -L -P -O1 -O2 -O3 -name= -iname= -path= -ipath= -wholename= -iwholename= -regex= -iregex= \
           -regextype= -lname= -ilname= -type= -xtype= -maxdepth= -mindepth= -size= -empty -mtime= \
           -mmin= -atime= -amin= -ctime= -cmin= -newer= -anewer= -cnewer= -neweraa= -newerac= \
           -neweram= -newerat= -newerca= -newercc= -newercm= -newerct= -newerma= -newermc= -newermm= \
           -newermt= -used= -user= -group= -uid= -gid= -nouser -nogroup -perm= -readable -writable \
           -executable -inum= -links= -samefile= -fstype= -context= -depth -d -mount -xdev -noleaf \
           -prune -print -print0 -printf= -ls -quit -true -false -not -a -and -o -or -daystart -follow \
           -ignore_readdir_race -noignore_readdir_race -warn -nowarn -help --help -version --version"],
    )
    .writes("-delete -fprint= -fprint0= -fprintf= -fls=")
    .runs("-exec -execdir -ok -okdir -files0-from= -D=")
    .style(Style::Words),
    offered(
        "rg",
        &[HELP, "-e= --regexp= -f= --file= -i --ignore-case -S --smart-case -s --case-sensitive -F \
           --fixed-strings -w --word-regexp -x --line-regexp -v --invert-match -c --count \
           --count-matches -l --files-with-matches --files-without-match --files -n --line-number -N \
           --no-line-number -H --with-filename -I --no-filename -o --only-matching -A= \
           --after-context= -B= --before-context= -C= --context= -g= --glob= --iglob= -t= --type= -T= \
           --type-not= --type-list --type-add= -u --unrestricted --hidden -. --no-hidden --no-ignore \
           --no-ignore-vcs --no-ignore-parent --no-ignore-dot -L --follow -d= --max-depth= -m= \
           --max-count= -M= --max-columns= --max-filesize= --heading --no-heading --color= --colors= \
           --column --json -U --multiline --multiline-dotall -P --pcre2 --engine= -r= --replace= \
           --sort= --sortr= --stats --trim --vimgrep -p --pretty -q --quiet -0 --null -a --text \
           --binary --no-messages --passthru --no-config -E= --encoding= -j= --threads= \
           --line-buffered --one-file-system --crlf --debug -V -h --include-zero -b --byte-offset"],
    )
    .runs("--pre= --pre-glob= -z --search-zip --hostname-bin= --hyperlink-format= --ignore-file="),
    offered(
        "shellcheck",
        &["-a --check-sourced -C[=] --color[=] -i= --include= -e= --exclude= -f= --format= \
           --list-optional --norc -o= --enable= -P= --source-path= -s= --shell= -S= --severity= -V \
           --version -W= --wiki-link-count= -x --external-sources --help"],
    )
    .runs("--rcfile="),
    offered(
        "sort",
        &[HELP, "-b --ignore-leading-blanks -d --dictionary-order -f --ignore-case -g \
           --general-numeric-sort -i --ignore-nonprinting -M --month-sort -h --human-numeric-sort -n \
           --numeric-sort -R --random-sort --random-source= -r --reverse --sort= -V --version-sort \
           --batch-size= -c --check[=] -C --debug --files0-from= -k= --key= -m --merge -s --stable \
           -S= --buffer-size= -t= --field-separator= --parallel= -u --unique -z --zero-terminated"],
    )
    .writes("-o= --output= -T= --temporary-directory=")
    .runs("--compress-program="),
    offered(
        "tree",
        &[HELP, "-a -d -l -f -x -L= -P= -I= --gitignore --gitfile= --ignore-case --matchdirs --metafirst \
           --prune --info --infofile= --noreport --charset= --filelimit= -q -N -Q -p -u -g -s -h --si \
           --du -D --timefmt= -F --inodes --device -v -t -c -U -r --dirsfirst --filesfirst --sort[=] \
           -i -A -S -n -C -X -J -H= -T= --nolinks --hintro= --houtro= --fromfile --fromtabfile \
           --fflinks"],
    )
    .writes("-o= -R")
    .style(Style::LettersOnly),
    offered(
        "uniq",
        &[HELP, "-c --count -d --repeated -D --all-repeated[=] -f= --skip-fields= --group[=] -i \
           --ignore-case -s= --skip-chars= -u --unique -z --zero-terminated -w= --check-chars="],
    )
    .operands(Operands::AtMostOne),
    // Git.
    global(
        "git",
        &["--no-pager -P --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs \
           --icase-pathspecs --no-replace-objects --no-lazy-fetch --no-advice --version -v"],
        "-c= -C= --config-env= --exec-path[=] --git-dir= --work-tree= --namespace= --bare -p --paginate \
         --super-prefix= --attr-source= --help -h --html-path --man-path --info-path",
    ),
    offered(
        "git blame",
        &["-b --root --no-root --show-stats --progress --no-progress --score-debug -f --show-name -n \
           --show-number -p --porcelain --line-porcelain -c -t -l -s -e --show-email -w --ignore-rev= \
           --ignore-revs-file= --color-lines --color-by-age --minimal -S= --contents= -C[=] -M[=] -L= \
           --abbrev[=] --incremental --date= --since= --first-parent --reverse --encoding="],
    )
    .runs(DIFF_RUNS)
    .writes(DIFF_WRITES)
    .of_git(),
    offered(
        "git branch",
        &["-v -vv --verbose -q --quiet --color[=] --no-color -r --remotes --contains= --no-contains= \
           --abbrev[=] --no-abbrev -a --all -l --list --show-current --merged= --no-merged= \
           --column[=] --no-column --sort= --points-at= -i --ignore-case --format= --omit-empty"],
    )
    .operands(Operands::None)
    .writes(
        "-d --delete -D -m --move -M -c --copy -C -u= --set-upstream-to= --unset-upstream -f --force -t \
         --track[=] --no-track --create-reflog --recurse-submodules",
    )
    .runs("--edit-description --help")
    .of_git(),
    offered(
        "git diff",
        &[DIFF, "-1 -2 -3 -0 --base --ours --theirs --merge-base --cached --staged --no-index -q"],
    )
    .writes(DIFF_WRITES)
    .runs(DIFF_RUNS)
    .of_git(),
    offered("git log", &[DIFF, COMMITS])
        .writes(DIFF_WRITES)
        .runs(DIFF_RUNS)
        .of_git(),
    offered(
        "git ls-files",
        &["-z -t -v -f -c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -k \
           --killed --directory --no-empty-directory --empty-directory --eol -u --unmerged \
           --resolve-undo -x= --exclude= -X= --exclude-from= --exclude-per-directory= \
           --exclude-standard --full-name --error-unmatch --with-tree= --abbrev[=] --debug \
           --deduplicate --sparse --format="],
    )
    .runs("--recurse-submodules --help")
    .of_git(),
    offered(
        "git rev-parse",
        &["--verify -q --quiet --short[=] --abbrev-ref[=] --symbolic --symbolic-full-name --all \
           --branches[=] --tags[=] --remotes[=] --glob= --exclude= --git-dir --git-common-dir \
           --absolute-git-dir --show-toplevel --show-prefix --show-cdup \
           --show-superproject-working-tree --is-inside-git-dir --is-inside-work-tree \
           --is-bare-repository --is-shallow-repository --show-ref-format --revs-only --no-revs \
           --flags --no-flags --default= --since= --until= --sq --not --show-object-format[=] \
           --shared-index-path --git-path= --path-format= --local-env-vars --end-of-options"],
    )
    .runs("--resolve-git-dir= --parseopt --prefix= --help")
    .of_git(),
    offered("git show", &[DIFF, COMMITS])
        .writes(DIFF_WRITES)
        .runs(DIFF_RUNS)
        .of_git(),
    offered(
        "git status",
        &["-v --verbose -s --short -b --branch --show-stash --ahead-behind --no-ahead-behind \
           --porcelain[=] --long -z --null -u[=] --untracked-files[=] --ignored[=] \
           --ignore-submodules[=] --column[=] --no-column --no-renames --renames -M[=] \
           --find-renames[=]"],
    )
    .runs("--help")
    .of_git(),
    // JavaScript.
    global("npm", &[NPM], NPM_RUNS),
    offered("npm audit", &[NPM, "--omit= --include= --production --audit-level= --package-lock-only"])
        .operands(Operands::Word("signatures"))
        .writes(NPM_WRITES)
        .runs(NPM_RUNS)
        .of_folder(),
    offered(
        "npm ls",
        &[NPM, "--all -a --depth= --omit= --include= --production --prod --dev --link \
           --package-lock-only"],
    )
    .operands(Operands::Names)
    .writes(NPM_WRITES)
    .runs(NPM_RUNS)
    .of_folder(),
    offered("npm outdated", &[NPM, "--all -a"])
        .operands(Operands::Names)
        .writes(NPM_WRITES)
        .runs(NPM_RUNS)
        .of_folder(),
    offered("npm run", &[NPM, "--if-present --foreground-scripts"])
        .writes(NPM_WRITES)
        .runs(NPM_RUNS)
        .behind(Behind::Unknown)
        .of_folder(),
    offered("npm test", &[NPM, "--if-present --foreground-scripts"])
        .writes(NPM_WRITES)
        .runs(NPM_RUNS)
        .behind(Behind::Unknown)
        .of_folder(),
    offered("npm view", &[NPM])
        .operands(Operands::Names)
        .writes(NPM_WRITES)
        .runs(NPM_RUNS)
        .of_folder(),
    global("pnpm", &[], "-C= --dir= -r --recursive -F= --filter= --config= -w --workspace-root"),
    offered(
        "pnpm ls",
        &["--depth= --json --long --parseable -P --prod -D --dev --no-optional --only-projects"],
    )
    .operands(Operands::Names)
    .runs("-C= --dir= -r --recursive -F= --filter= -g --global -w --workspace-root")
    .of_folder(),
    offered("pnpm outdated", &["--long --format= --no-table --compatible -P --prod -D --dev --no-optional"])
        .operands(Operands::Names)
        .runs("-C= --dir= -r --recursive -F= --filter= -g --global -w --workspace-root")
        .of_folder(),
    // Words after a script's name belong to the script.
    offered("pnpm run", &[])
        .runs("--script-shell= --shell-emulator -C= --dir=")
        .behind(Behind::Unknown)
        .of_folder(),
    offered("pnpm test", &[])
        .runs("--script-shell= --shell-emulator -C= --dir=")
        .behind(Behind::Unknown)
        .of_folder(),
    global("yarn", &[], "--cwd= --use-yarnrc= --modules-folder= --script-shell="),
    offered("yarn run", &[])
        .runs("--cwd= --use-yarnrc= --script-shell= -T --top-level -B --inspect[=] --require=")
        .behind(Behind::Unknown)
        .of_folder(),
    offered("yarn test", &[])
        .runs("--cwd= --use-yarnrc= --script-shell=")
        .behind(Behind::Unknown)
        .of_folder(),
    offered("yarn why", &["-R --recursive --json --peers"])
        .operands(Operands::Names)
        .runs("--cwd= --use-yarnrc=")
        .of_folder(),
    global("bun", &[], "--cwd= -c= --config= --env-file= -r= --preload= -e= -p="),
    offered("bun run", &[])
        .runs("--shell= --cwd= -c= --config= --preload= -r= --bun -b --filter= --env-file=")
        .behind(Behind::Unknown)
        .of_folder(),
    offered("bun test", &["-t= --test-name-pattern= --timeout= --bail[=] --only --todo --rerun-each="])
        .operands(Operands::Inside)
        .writes("--coverage --coverage-dir= -u --update-snapshots --reporter-outfile=")
        .runs("--preload= -r= -c= --config= --cwd= --env-file= -e= --eval= -p= --print= --reporter=")
        .behind(Behind::Unknown)
        .of_folder(),
    offered(
        "eslint",
        &["--ext= --quiet --max-warnings= --no-inline-config --report-unused-disable-directives \
           --no-error-on-unmatched-pattern --color --no-color --version -v -h --help"],
    )
    .operands(Operands::Inside)
    .writes(
        "--fix --fix-type= -o= --output-file= --cache --cache-file= --cache-location= --init \
         --suppress-all --prune-suppressions",
    )
    .runs(
        "-c= --config= --plugin= --parser= --parser-options= --rulesdir= \
         --resolve-plugins-relative-to= -f= --format= --env-info --inspect-config --flag= --rule= \
         --ignore-path=",
    )
    .of_folder(),
    offered(
        "jest",
        &["--ci --silent --verbose --bail[=] -b -t= --testNamePattern= -i --runInBand --maxWorkers= \
           --no-cache --listTests --passWithNoTests --onlyFailures --expand --colors --forceExit \
           --detectOpenHandles --testTimeout= --no-coverage --json --help --version"],
    )
    .operands(Operands::Inside)
    .writes("--coverage[=] --coverageDirectory= --outputFile= -u --updateSnapshot --init --cacheDirectory=")
    .runs(
        "-c= --config= --rootDir= --roots= --projects= --setupFiles= --setupFilesAfterEnv= \
         --globalSetup= --globalTeardown= --testRunner= --runner= --transform= --preset= --reporters= \
         --resolver= --env= --testEnvironment= --require= --haste= --watchPlugins= -o --onlyChanged \
         --changedSince= --testSequencer= --snapshotSerializers= --moduleDirectories= \
         --modulePaths= --filter= --dependencyExtractor= --testResultsProcessor= --prettierPath= \
         --coverageProvider= --workerThreads",
    )
    .of_folder(),
    offered("tsc", &["--noEmit --pretty --strict --skipLibCheck --listFiles --listFilesOnly --version -v \
           --help -h --showConfig --explainFiles --extendedDiagnostics --diagnostics"])
        .needs("--noEmit")
        .operands(Operands::Inside)
        .writes(
            "--outDir= --outFile= --declarationDir= --build -b --init --generateTrace= \
             --generateCpuProfile= --tsBuildInfoFile= --incremental --locale=",
        )
        .runs("-p= --project= --plugins= --rootDir= --baseUrl= --typeRoots= --paths=")
        .style(Style::Words)
        .of_folder(),
    offered(
        "vitest run",
        &["-t= --testNamePattern= --passWithNoTests --no-coverage --silent --bail= --retry= --no-color \
           --hideSkippedTests --changed --help -h --version -v"],
    )
    .operands(Operands::Inside)
    .writes("--coverage[=] --outputFile= -u --update --coverage.reportsDirectory= --cache")
    .runs(
        "-c= --config= -r= --root= --dir= --reporter= --environment= --globals --setupFiles= \
         --globalSetup= --project= --workspace= --pool= --execArgv= --browser= --runner= --api[=] --ui \
         --inspect[=] --typecheck[=] --configLoader= --mode= --standalone",
    )
    .of_folder(),
    // Rust and Go.
    global(
        "cargo",
        &["-q --quiet -v -vv --verbose --color= --locked --offline --frozen -V --version --list -h --help"],
        CARGO_RUNS,
    ),
    offered("cargo bench", &[CARGO, "--no-run --no-fail-fast"])
        .writes(CARGO_WRITES)
        .runs(CARGO_RUNS)
        .behind(Behind::Options(LIBTEST))
        .of_folder(),
    offered("cargo build", &[CARGO])
        .writes(CARGO_WRITES)
        .runs(CARGO_RUNS)
        .behind(Behind::Unknown)
        .of_folder(),
    offered("cargo check", &[CARGO])
        .writes(CARGO_WRITES)
        .runs(CARGO_RUNS)
        .behind(Behind::Unknown)
        .of_folder(),
    offered("cargo clippy", &[CARGO, "--no-deps"])
        .writes(CARGO_WRITES)
        .runs(CARGO_RUNS)
        .behind(Behind::Options("-D= -W= -A= -F= --deny= --warn= --allow= --forbid="))
        .of_folder(),
    offered("cargo doc", &[CARGO, "--no-deps --document-private-items"])
        .writes(CARGO_WRITES)
        .runs("--config= --manifest-path= -C= -Z= --target= --lockfile-path= --open")
        .behind(Behind::Unknown)
        .of_folder(),
    offered("cargo fmt", &["--check --all -q --quiet -v --verbose -p= --package= --message-format= -h \
           --help"])
        .needs("--check")
        .runs(CARGO_RUNS)
        .behind(Behind::Options("--check -l --verbose -v --color= -q --quiet"))
        .of_folder(),
    offered("cargo metadata", &[CARGO, "--format-version= --no-deps --filter-platform="])
        .writes(CARGO_WRITES)
        .runs(CARGO_RUNS)
        .of_folder(),
    offered("cargo test", &[CARGO, "--no-run --no-fail-fast --doc"])
        .writes(CARGO_WRITES)
        .runs(CARGO_RUNS)
        .behind(Behind::Options(LIBTEST))
        .of_folder(),
    offered(
        "cargo tree",
        &[CARGO, "-i= --invert= -e= --edges= --depth= --prune= -d --duplicates --charset= -f= --format= \
           --prefix= --no-dedupe"],
    )
    .writes(CARGO_WRITES)
    .runs(CARGO_RUNS)
    .of_folder(),
    global("go", &[], "-C="),
    typed("go build", &[GO])
        .operands(Operands::Inside)
        .writes(GO_WRITES)
        .runs(GO_RUNS)
        .style(Style::Words)
        .of_folder(),
    offered(
        "go list",
        &[GO, "-m -f= -deps -test -versions -u -e -find -compiled -retracted -reuse="],
    )
    .writes(GO_WRITES)
    .runs(GO_RUNS)
    .style(Style::Words)
    .of_folder(),
    offered(
        "go test",
        &[GO, "-run= -count= -short -timeout= -cover -covermode= -coverpkg= -bench= -benchtime= -benchmem \
           -cpu= -parallel= -failfast -list= -shuffle= -skip= -fullpath -vet= -test.v"],
    )
    .operands(Operands::Inside)
    .writes(GO_WRITES)
    .runs(GO_RUNS)
    .style(Style::Words)
    .of_folder(),
    offered("go version", &["-m -v -json"]).style(Style::Words),
    offered("go vet", &[GO])
        .operands(Operands::Inside)
        .writes(GO_WRITES)
        .runs(GO_RUNS)
        .style(Style::Words)
        .of_folder(),
    // Python.
    global("pip", &["-q --quiet -v --verbose --no-color --disable-pip-version-check -V --version"],
        "--python= --isolated --proxy= --cert= --client-cert= --log= --cache-dir= --require-virtualenv"),
    offered(
        "pip list",
        &["-o --outdated -u --uptodate -e --editable -l --local --user --pre --format= --not-required \
           --exclude= --include-editable --exclude-editable -v --verbose -q --quiet --no-color \
           --disable-pip-version-check -h --help"],
    )
    .writes("--log= --log-file= --local-log= --cache-dir= --keyring-provider=")
    .runs("--python= --path= -i= --index-url= --extra-index-url= -f= --find-links= --proxy= --cert= \
           --client-cert= --trusted-host="),
    offered("pip show", &["-f --files -v --verbose -q --quiet --no-color --disable-pip-version-check -h \
           --help"])
        .writes("--log= --log-file= --local-log= --cache-dir=")
        .runs("--python= --proxy= --cert= --client-cert= --trusted-host="),
    offered(
        "mypy",
        &["--strict --ignore-missing-imports --no-error-summary --pretty --show-error-codes \
           --hide-error-codes -v --verbose --no-color-output --check-untyped-defs \
           --disallow-untyped-defs --warn-unused-ignores --warn-return-any --warn-unreachable \
           --no-implicit-optional --python-version= --platform= -p= --package= -m= --module= \
           --no-incremental --follow-imports= --explicit-package-bases --namespace-packages \
           --exclude= -h --help -V --version"],
    )
    .operands(Operands::Inside)
    .writes(
        "--junit-xml= --html-report= --txt-report= --xml-report= --any-exprs-report= \
         --linecount-report= --linecoverage-report= --lineprecision-report= --cobertura-xml-report= \
         --xslt-html-report= --xslt-txt-report= --cache-dir= --timing-stats= --line-checking-stats=",
    )
    .runs(
        "--config-file= --python-executable= --install-types --non-interactive --pdb --custom-typeshed-dir= \
         --custom-typing-module= -c= --command=",
    )
    .of_folder(),
    offered(
        "pytest",
        &["-q -qq --quiet -v -vv -vvv --verbose -x --exitfirst -k= -m= --lf --last-failed --ff \
           --failed-first --nf --new-first --sw --stepwise --maxfail= --tb= -s --capture= -l \
           --showlocals -r= --durations= --durations-min= --collect-only --co --color= --no-header \
           --no-summary --disable-warnings --disable-pytest-warnings --strict-markers --strict-config \
           --setup-show --setup-plan --markers --fixtures --ignore= --ignore-glob= --deselect= -n= \
           --no-cov -h --help -V --version"],
    )
    .operands(Operands::Inside)
    .writes(
        "--junitxml= --junit-xml= --cache-clear --basetemp= --log-file= --cov-report= --cov[=] \
         --report-log= --html= --pastebin= --resultlog= --snapshot-update --benchmark-save=",
    )
    .runs(
        "-p= -c= --config-file= --rootdir= --confcutdir= -o= --override-ini= --pyargs --import-mode= \
         --pdb --pdbcls= --trace -W= --pythonwarnings= --debug[=] --dist= --tx= --rsyncdir=",
    )
    .of_folder(),
    // Servers and infrastructure.
    global("docker", &["-v --version --help"], DOCKER_RUNS),
    offered(
        "docker images",
        &["-a --all --digests -f= --filter= --format= --no-trunc -q --quiet --tree --help"],
    )
    .runs(DOCKER_RUNS),
    offered(
        "docker ps",
        &["-a --all -f= --filter= --format= -n= --last= -l --latest --no-trunc -q --quiet -s --size \
           --help"],
    )
    .operands(Operands::None)
    .runs(DOCKER_RUNS),
    offered("docker version", &["-f= --format= --help"])
        .operands(Operands::None)
        .runs("-H= --host= --config= --kubeconfig= -c= --context="),
    global(
        "kubectl",
        &["-n= --namespace= -v= --v= --request-timeout="],
        "--kubeconfig= --context= --cluster= --user= -s= --server= --token= --as= --as-group= --as-uid= \
         --client-certificate= --client-key= --certificate-authority= --insecure-skip-tls-verify[=] \
         --username= --password= --tls-server-name= --cache-dir= --profile= --profile-output= \
         --log-file= --log-dir= --kuberc=",
    ),
    offered(
        "kubectl get",
        &["-A --all-namespaces[=] -n= --namespace= -o= --output= -l= --selector= -L= --label-columns= -w \
           --watch[=] --watch-only[=] --no-headers[=] --show-labels[=] --show-kind[=] --sort-by= \
           --field-selector= --ignore-not-found[=] --chunk-size= --output-watch-events[=] \
           --allow-missing-template-keys[=] --show-managed-fields[=] --server-print[=] --subresource= \
           --request-timeout= --template= -v= --v= -h --help"],
    )
    .writes("--cache-dir= --profile= --profile-output= --log-file= --log-dir=")
    .runs(
        "--kubeconfig= --context= --cluster= --user= -s= --server= --token= --as= --as-group= --as-uid= \
         --client-certificate= --client-key= --certificate-authority= --insecure-skip-tls-verify[=] \
         --username= --password= --tls-server-name= -k= --kustomize= -f= --filename= --raw= --kuberc=",
    ),
    global("terraform", &["-version -help"], "-chdir="),
    offered("terraform fmt", &["-check -diff -recursive -list[=] -no-color"])
        .needs("-check")
        .operands(Operands::Inside)
        .writes("-write[=]")
        .style(Style::Words)
        .of_folder(),
    offered("terraform validate", &["-json -no-color -no-tests -test-directory="])
        .operands(Operands::None)
        .style(Style::Words)
        .of_folder(),
    offered("terraform version", &["-json"])
        .operands(Operands::None)
        .style(Style::Words)
        .of_folder(),
    // Never offered: for rules that people write themselves.
    typed(
        "make",
        &["-k --keep-going -n --dry-run --just-print --recon -s --silent --quiet --no-silent -j[=] \
           --jobs[=] -l[=] --load-average[=] -B --always-make -q --question -w --print-directory \
           --no-print-directory -i --ignore-errors -S --no-keep-going --stop -O[=] --output-sync[=] -r \
           --no-builtin-rules -R --no-builtin-variables -d --debug[=] --trace -v --version -h --help -p \
           --print-data-base --warn-undefined-variables"],
    )
    .writes("-t --touch")
    .runs(
        "-f= --file= --makefile= -C= --directory= -I= --include-dir= -E= --eval= -e \
         --environment-overrides -o= --old-file= --assume-old= -W= --what-if= --new-file= --assume-new=",
    )
    .of_folder(),
    typed(
        "man",
        &["-k --apropos -f --whatis -w --where --path --location -a --all -s= -S= --sections= -V \
           --version --help --usage -i -I --regex --wildcard --names-only -u --update"],
    )
    .operands(Operands::Names)
    .runs(
        "-P= --pager= -H[=] --html[=] -C= --config-file= -M= --manpath= -l --local-file -p= \
         --preprocessor= -X[=] --gxditview[=] -T[=] --troff-device[=] -t --troff -Z --ditroff -R= \
         --recode= -K --global-apropos -L= --locale= -m= --systems= -E= --encoding= -D --default",
    ),
    typed("printf", &[]),
    typed(
        "sed",
        &[HELP, "-n --quiet --silent -E -r --regexp-extended -s --separate -u --unbuffered -z --null-data \
           -e= --expression= -l= --line-length= --posix --debug"],
    )
    .writes("-i[=] --in-place[=] --follow-symlinks")
    .runs("-f= --file="),
    typed("set", &["-e -u -x -o="]),
    typed("tar", &[])
        .operands(Operands::None)
        .writes(
            "-c --create -x --extract --get -r --append -u --update -A --catenate --concatenate --delete \
             -t --list -f= --file= -C= --directory= --one-top-level[=] -g= --listed-incremental= \
             --index-file= --volno-file= --remove-files --overwrite",
        )
        .runs(
            "-I= --use-compress-program= -F= --info-script= --new-volume-script= --to-command= \
             --checkpoint-action= --rsh-command= --rmt-command= -z --gzip -j --bzip2 -J --xz --zstd -a \
             --auto-compress -Z --compress --lzip --lzma --lzop",
        ),
    typed(
        "test",
        &["-a -b -c -d -e -f -g -h -k -p -r -s -t -u -w -x -G -L -N -O -S -z -n -o -eq -ne -lt -le -gt -ge \
           -nt -ot -ef"],
    )
    .runs("-v= -R=")
    .style(Style::Words),
    typed(
        "[",
        &["-a -b -c -d -e -f -g -h -k -p -r -s -t -u -w -x -G -L -N -O -S -z -n -o -eq -ne -lt -le -gt -ge \
           -nt -ot -ef"],
    )
    .runs("-v= -R=")
    .style(Style::Words),
    global("uv", &["-q --quiet -v --verbose -V --version"],
        "--directory= --project= --config-file= --python= -p= --cache-dir= --default-index= --index="),
    typed("uv tree", &["--depth= --prune= --package= --no-dedupe --invert --universal --frozen --locked"])
        .runs("--directory= --project= --config-file= --python= -p= --script= --index= --find-links= -f=")
        .writes("--cache-dir= --upgrade -U")
        .of_folder(),
];
