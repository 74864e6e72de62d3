// `echelon train` in this process, its ranks as threads.
#pragma once

#include <string>
#include <vector>

namespace echelon::test {

// The exit code that all ranks end with. Throws where they differ, or where an error of one rank alone would have ended
// the world. `hosts` by rank; empty: one. What the run tells goes to standard output and standard error.
int train_on_threads(const std::string& config, const std::vector<std::string>& sets, int ranks,
                     const std::vector<int>& hosts = {});

}  // namespace echelon::test
