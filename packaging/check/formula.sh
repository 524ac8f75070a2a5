# Reads the formula without Homebrew: the words that it uses are printed, and their blocks run.
cat >/tmp/brew.rb <<'RUBY'
class Formula
  %i[desc homepage version license url sha256 on_macos on_linux on_arm on_intel test].each do |word|
    define_singleton_method(word) do |*values, &block|
      puts "#{word} #{values.join(' ')}"
      # A test runs the installed program.
      block&.call unless word == :test
    end
  end
end
load '/given/haversack.rb'
abort 'the formula installs nothing' unless Haversack.method_defined?(:install)
RUBY
ruby -wc /given/haversack.rb
ruby /tmp/brew.rb >/tmp/words.txt
for word in desc homepage version license url sha256 test; do
    grep -q "^$word" /tmp/words.txt || { cat /tmp/words.txt; exit 1; }
done
echo 'ruby: passed'
