echo "no training here"
