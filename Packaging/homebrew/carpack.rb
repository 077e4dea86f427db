# A Homebrew formula that builds carpack from source. Whoever publishes a release sets the address and the digest of its source archive.
class Carpack < Formula
  desc "Backup of AT Protocol accounts in one verified file"
  homepage "https://example.com/carpack"
  url "https://example.com/carpack-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "pkgconf" => :build
  depends_on xcode: ["26.0", :build]
  depends_on macos: :tahoe
  depends_on "curl"
  depends_on "openssl@3"
  depends_on "xxhash"
  depends_on "zstd"
  uses_from_macos "zlib"

  uses_from_macos "python" => :build

  def install
    # Homebrew builds in a sandbox of its own, in which SwiftPM's does not work.
    system "make", "install", "PREFIX=#{prefix}", "SWIFT=swift", "SWIFT_FLAGS=--disable-sandbox"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/carpack --version")
    (testpath/"not-an-archive").write "nothing"
    shell_output("#{bin}/carpack verify not-an-archive 2>&1", 11)
  end
end
